"""The passes of a step: one over prompts, one over what decodes, in each class."""

from collections.abc import Iterator
from typing import Protocol, cast

import torch
from torch import Tensor

from k3.kernels import choose as kernels
from k3.model import DecodeState, Model, decode_step
from k3.model.completion import Token
from k3.serve import speculate
from k3.serve.choose import choose
from k3.serve.draft import Draft
from k3.serve.prompts import Piece, Prompts, experts_of
from k3.serve.scheduler import Lane
from k3.serve.sequence import Sequence
from k3.serve.speculate import Block

FAILURES = 2
"""Decoding passes that may fail before their sequences end with an error."""


class Report(Protocol):
    """Where tokens, ends and errors of sequences go."""

    def __call__(
        self,
        sequence: Sequence,
        chosen: list[Token] | Exception,
        *,
        drafted: int = 0,
        accepted: int = 0,
    ) -> None:
        """Take what one pass gave one sequence."""


class Passes:
    """Runs what a lane has to run; what goes wrong stays with whom it concerns."""

    def __init__(
        self,
        model: Model,
        prompts: Prompts,
        report: Report,
        draft: Draft | None = None,
    ) -> None:
        self.model, self.prompts, self.report = model, prompts, report
        self.draft = draft

    def prefill(self, lane: Lane, *, together: bool) -> None:
        """Run pieces of prompts, as many tokens as the lane's step has left."""
        for pieces in self._pieces(lane, together):
            try:
                logits = self.prompts.run(pieces)
            except Exception as error:
                self._failed(lane, pieces, error)
                continue
            for piece, row in zip(pieces, logits, strict=True):
                if not piece.sequence.ends:
                    self._prompt_done(lane, piece.sequence, row)

    def decode(self, lane: Lane) -> None:
        """Run one token of every sequence that decodes, or a round of drafting."""
        for part in lane.batch.settle(self._most_rows(lane)):
            rows = part.sequences
            try:
                part.state, blocks = self._next(part.state, rows, lane.row_tokens - 1)
            except Exception as error:
                self._unsettled(lane, rows, error)
                continue
            for row, block in enumerate(blocks):
                if block.tokens:
                    self._store(block.sequence, part.state, row, block.emitted)
                self.report(
                    block.sequence,
                    block.error or block.tokens,
                    drafted=block.drafted,
                    accepted=block.accepted,
                )

    def _most_rows(self, lane: Lane) -> int:
        """Rows of a pass: where one native call runs them, as many as it takes."""
        one_call = self.draft is None and kernels.native(
            self.model.language_model.lm_head.weight
        )
        return decode_step.MAX_BATCH if one_call else lane.max_seqs

    def _next(
        self, state: DecodeState, rows: list[Sequence], drafted: int
    ) -> tuple[DecodeState, list[Block]]:
        if self.draft is None:
            return self._step(state, rows)
        return speculate.decode(self.model, state, rows, self.draft, drafted)

    def _step(
        self, state: DecodeState, rows: list[Sequence]
    ) -> tuple[DecodeState, list[Block]]:
        """Run one token of each."""
        last = [[s.running.last_id] for s in rows]
        ids = torch.tensor(last, device=self.model.device)
        taps: dict[str, Tensor] | None = {} if self.prompts.routes else None
        logits, state = self.model.step(ids, state, taps)
        if taps is not None:
            for s, row in zip(rows, experts_of(taps), strict=True):
                s.routes.append((len(s) - 1, row[None]))
        chosen = choose(logits[:, -1], rows)
        return state, [Block.of(s, each) for s, each in zip(rows, chosen, strict=True)]

    def _pieces(self, lane: Lane, together: bool) -> Iterator[list[Piece]]:
        """What each pass runs; those that run alone have a pass of their own."""
        budget, packed = lane.prompt_tokens(), []
        ahead: list[Sequence] = []
        for s in list(lane.prefilling):
            if budget < 1:
                break
            if self.prompts.follows(s, ahead):
                continue
            ahead.append(s)
            try:
                piece = self.prompts.piece(s, budget)
            except Exception as error:
                self._failed(lane, [Piece(s, range(0))], error)
                continue
            budget -= len(piece.span)
            if together and not (s.alone or s.scoring):
                packed.append(piece)
            else:
                yield [piece]
        if packed:
            yield packed

    def _failed(self, lane: Lane, pieces: list[Piece], error: Exception) -> None:
        """One alone has failed; of several, each is to try alone."""
        for piece in pieces:
            s = piece.sequence
            if len(pieces) == 1:
                for each in (s, *s.siblings):
                    self.report(each, error)
            else:
                s.restart()
                s.alone = True

    def _unsettled(self, lane: Lane, rows: list[Sequence], error: Exception) -> None:
        """A decoding pass has failed: what it held is lost, and is run again."""
        for s in rows:
            s.failures += 1
            if s.failures >= FAILURES:
                self.report(s, error)
            else:
                lane.send_back(s)

    def _prompt_done(self, lane: Lane, s: Sequence, logits: Tensor) -> None:
        """Choose the first token of every sample, and let them decode."""
        state, group = cast("DecodeState", s.state), [s, *s.siblings]
        if s.scoring:
            s.reported = s.scores
        lane.remove(s)
        for sibling in s.siblings:
            sibling.reported, sibling.cached_tokens = s.reported, s.cached_tokens
            sibling.trace = s.trace.fork()
        s.siblings = []
        if s.running.ended:
            for each in group:
                self.report(each, [])
            return
        chosen = choose(logits.expand(len(group), -1), group)
        for each, token in zip(group, chosen, strict=True):
            self.report(each, [token] if isinstance(token, Token) else token)
        seated: list[Sequence] = []
        for each in (each for each in group if not each.finish):
            if lane.fits([*lane.active, *seated, each], lane.row_tokens):
                seated.append(each)
            else:
                lane.queue(each)
        alone = len(seated) == 1
        state = state if alone else state.select([0] * len(seated))
        keep = speculate.keep_inputs(lane.row_tokens - 1)
        # Prompts keep nothing: they run as they do without a draft.
        lane.batch.add(seated, state.keeping(keep) if keep else state)

    def _store(self, s: Sequence, state: DecodeState, row: int, new: int) -> None:
        """Keep what a sequence has come to, at boundaries and at its end."""
        cache, length = self.prompts.cache, state.lens[row]
        if cache is None:
            return
        over = length % cache.options.hash_tokens
        if 0 < over < new:
            # Only a state of its own can be taken back to the boundary.
            state, row = state.select([row]), 0
        if s.finish or over < new:
            cache.store(s.chain, state, row=row, turn=bool(s.finish))
