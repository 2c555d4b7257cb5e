"""Sequences that decode together, and the one state they share, row by row."""

from typing import TypeAlias

from k3.model import DecodeState
from k3.serve.sequence import Sequence

Rows: TypeAlias = list[Sequence | None]


class Batch:
    """The rows of one DecodeState. It is copied only when the set has changed."""

    def __init__(self) -> None:
        self.parts: list[tuple[Rows, DecodeState]] = []

    @property
    def rows(self) -> list[Sequence]:
        """The sequences, in the order of their rows."""
        return [s for rows, _ in self.parts for s in rows if s]

    @property
    def nbytes(self) -> int:
        """Bytes of the states that are held."""
        return sum(state.nbytes for _, state in self.parts)

    def add(self, rows: list[Sequence], state: DecodeState) -> None:
        """Take sequences in, with the state that has a row for each."""
        assert len(rows) == state.batch, "a sequence has one row"
        if rows:
            self.parts.append(([*rows], state))

    def drop(self, sequence: Sequence) -> None:
        """Let a sequence go; its row is freed when the set is next copied."""
        for rows, _ in self.parts:
            rows[:] = [None if s is sequence else s for s in rows]
        self.parts = [part for part in self.parts if any(part[0])]

    def settle(self) -> DecodeState | None:
        """Return one state with a row for each of `rows`, None if there are none."""
        if not self.parts:
            return None
        states = [_without_gaps(*part) for part in self.parts]
        state = states[0] if len(states) == 1 else DecodeState.join(states)
        self.parts = [([*self.rows], state)]
        return state

    def put(self, state: DecodeState) -> None:
        """Take the state that a pass has made of the settled one."""
        self.parts = [(self.parts[0][0], state)]


def _without_gaps(rows: Rows, state: DecodeState) -> DecodeState:
    live = [row for row, sequence in enumerate(rows) if sequence]
    return state if len(live) == len(rows) else state.select(live)
