"""Prompts in pieces: restored, run together, and stored as they pass (§5.4.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

import torch
from jaxtyping import Int
from torch import Tensor

from k3.model import DecodeState, Model
from k3.model.completion import Choice
from k3.model.draft import features
from k3.serve.entries import Write
from k3.serve.features import Layers
from k3.serve.images import Features
from k3.serve.prefill import chunk_ends
from k3.serve.prefix import PrefixCache
from k3.serve.sequence import Sequence

SCORED_TOKENS = 256
"""Tokens of a pass that keeps all its logits."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens of a sequence that one pass runs."""

    sequence: Sequence
    span: range

    @property
    def tokens(self) -> list[int]:
        """Their ids."""
        return self.sequence.chain.tokens[self.span.start : self.span.stop]


class Prompts:
    """Runs the chains of sequences that have no state, or only a part of it."""

    def __init__(
        self,
        model: Model,
        cache: PrefixCache | None,
        keep_inputs: int = 0,
        reads: Layers = (),
        *,
        routes: bool = False,
    ) -> None:
        self.model, self.cache, self.keep_inputs = model, cache, keep_inputs
        self.reads, self.routes = reads, routes
        self.features = Features(model)

    def begin(self, s: Sequence) -> None:
        """Restore the longest stored prefix, and set where passes end."""
        if self.cache is None:
            s.state, s.ends = self.model.init_state(1, self.keep_inputs), [len(s)]
            return
        if s.scoring:
            s.state = self.model.init_state(1, self.keep_inputs)
        else:
            s.state, s.position = self.cache.restore(
                s.chain, keep_inputs=self.keep_inputs
            )
        branch = self.cache.matched(s.chain)
        options = self.cache.options
        s.ends = chunk_ends(s.position, len(s), options, branch)
        s.turns = {branch, len(s) // options.hash_tokens * options.hash_tokens}
        if not s.started:
            s.cached_tokens = s.position

    def follows(self, s: Sequence, ahead: list[Sequence]) -> bool:
        """Whether one of those ahead is about to store what this one starts with.

        Then it waits: the same tokens are run once, and restored.
        """
        if self.cache is None or s.state is not None or s.scoring:
            return False
        unit, mine = self.cache.options.hash_tokens, s.chain.reusable()
        shared = [
            size
            for other in ahead
            if (size := unit * common(mine, other.chain.keys)) > other.position
        ]
        return bool(shared) and self.cache.matched(s.chain) < max(shared)

    def piece(self, s: Sequence, budget: int) -> Piece:
        """What a pass of at most `budget` tokens runs of a sequence."""
        if s.state is None:
            self.begin(s)
        most = min(budget, SCORED_TOKENS) if s.scoring else budget
        return Piece(s, range(s.position, min(s.ends[0], s.position + most)))

    def run(self, pieces: list[Piece]) -> Tensor:
        """One pass: logits [S W] after the last token of each piece.

        States move on and what ends on a boundary is stored. If the pass fails,
        nothing is stored and the sequences have to start again.
        """
        writes = [self._schedule(piece) for piece in pieces]
        try:
            logits, state = self._pass(pieces)
        except BaseException:
            for write in writes:
                if write is not None and self.cache is not None:
                    self.cache.abort(write)
            raise
        for row, write in enumerate(writes):
            if write is not None and self.cache is not None:
                self.cache.commit(write, state, row)
        for row, piece in enumerate(pieces):
            _move(piece, state if len(pieces) == 1 else state.select([row]))
        return logits

    def _schedule(self, piece: Piece) -> Write | None:
        s, stop = piece.sequence, piece.span.stop
        if self.cache is None or stop != s.ends[0]:
            return None
        if stop % self.cache.options.hash_tokens:
            return None
        return self.cache.schedule(s.chain, stop, turn=stop in s.turns)

    def _pass(self, pieces: list[Piece]) -> tuple[Tensor, DecodeState]:
        states = [cast("DecodeState", piece.sequence.state) for piece in pieces]
        ids = [token for piece in pieces for token in piece.tokens]
        found = [
            self.features.of(p.sequence.request, p.sequence.chain, p.span)
            for p in pieces
        ]
        parts = [rows for rows in found if rows is not None]
        scored = pieces[0].sequence.scoring
        bounds = torch.tensor([0, *accumulate(len(piece.span) for piece in pieces)])
        taps: dict[str, Tensor] = {}
        logits, state = self.model(
            torch.tensor([ids], device=self.model.device),
            state=states[0] if len(states) == 1 else DecodeState.join(states),
            features=torch.cat(parts) if parts else None,
            cu_seqlens=None if len(states) == 1 else bounds,
            logits="all" if scored else "last",
            taps=taps if self.reads or self.routes else None,
        )
        if self.routes:
            _tell(pieces, taps)
        if self.reads:
            _trace(pieces, features(taps, self.reads)[0])
        if scored:
            _score(pieces[0], logits[0])
            logits = logits[:, -1:]
        return logits[:, -1], state


def _trace(pieces: list[Piece], seen: Tensor) -> None:
    """Leave a draft the features of what has been run."""
    parts = seen.split([len(piece.span) for piece in pieces])
    for piece, part in zip(pieces, parts, strict=True):
        piece.sequence.trace.see(piece.span.start, part)


def _tell(pieces: list[Piece], taps: dict[str, Tensor]) -> None:
    """Leave each sequence the experts of what has been run."""
    parts = experts_of(taps).split([len(piece.span) for piece in pieces])
    for piece, part in zip(pieces, parts, strict=True):
        piece.sequence.routes.append((piece.span.start, part))


def experts_of(taps: Mapping[str, Tensor]) -> Int[Tensor, "T layers k"]:
    """The experts of each token, from the taps of a pass or a step."""
    found = [x for name, x in taps.items() if name.endswith(".index")]
    return torch.stack(found, 1).to(torch.int16)


def common(a: list[bytes], b: list[bytes]) -> int:
    """How many chained keys two chains share: equal ones have equal predecessors."""
    least, most = 0, min(len(a), len(b))
    while least < most:
        middle = (least + most + 1) // 2
        if a[middle - 1] == b[middle - 1]:
            least = middle
        else:
            most = middle - 1
    return least


def _move(piece: Piece, state: DecodeState) -> None:
    s = piece.sequence
    s.state, s.position = state, piece.span.stop
    if s.position == s.ends[0]:
        s.ends.pop(0)


def _score(piece: Piece, logits: Tensor) -> None:
    """Append the log-probabilities of the tokens that follow these logits."""
    s = piece.sequence
    following = s.request.tokens[piece.span.start + 1 : piece.span.stop + 1]
    wide = logits[: len(following)].double().log_softmax(-1)
    most = s.request.prompt_logprobs or 0
    values, ids = wide.topk(min(most, wide.shape[-1]), -1)
    own = wide.gather(-1, torch.tensor(following, device=wide.device)[:, None])[:, 0]
    pairs = zip(ids.tolist(), values.tolist(), strict=True)
    s.scores += [
        Choice(logprob, tuple(zip(*pair, strict=True)))
        for logprob, pair in zip(own.tolist(), pairs, strict=True)
    ]
