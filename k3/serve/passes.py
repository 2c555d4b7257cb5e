"""The passes of a step: one over prompts, one over what decodes, in each class."""

from collections.abc import Iterator
from typing import Protocol, cast

import torch
from torch import Tensor

from k3.model import DecodeState, Model
from k3.model.completion import Token
from k3.serve.choose import choose
from k3.serve.prompts import Piece, Prompts
from k3.serve.scheduler import Lane
from k3.serve.sequence import Sequence

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

    def __init__(self, model: Model, prompts: Prompts, report: Report) -> None:
        self.model, self.prompts, self.report = model, prompts, report

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
        """Run one token of every sequence that decodes."""
        state, rows = lane.batch.settle(), lane.running
        if state is None:
            return
        last = [[s.running.last_id] for s in rows]
        try:
            ids = torch.tensor(last, device=self.model.device)
            logits, state = self.model.step(ids, state)
        except Exception as error:
            self._unsettled(lane, rows, error)
            return
        lane.batch.put(state)
        chosen = choose(logits[:, -1], rows)
        for row, (s, each) in enumerate(zip(rows, chosen, strict=True)):
            if isinstance(each, Token):
                self._store(s, state, row)
            self.report(s, [each] if isinstance(each, Token) else each)

    def _pieces(self, lane: Lane, together: bool) -> Iterator[list[Piece]]:
        """What each pass runs; those that run alone have a pass of their own."""
        budget, packed = lane.prompt_tokens(), []
        for s in list(lane.prefilling):
            if budget < 1:
                break
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
        lane.batch.add(seated, state if alone else state.select([0] * len(seated)))

    def _store(self, s: Sequence, state: DecodeState, row: int) -> None:
        """Keep what a sequence has come to, at boundaries and at its end."""
        cache, length = self.prompts.cache, state.lens[row]
        if cache is None:
            return
        if s.finish or length % cache.options.hash_tokens == 0:
            cache.store(s.chain, state, row=row, turn=bool(s.finish))
