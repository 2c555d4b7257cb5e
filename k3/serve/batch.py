"""Sequences that decode together, and the states they share, row by row."""

from dataclasses import dataclass

from k3.model import DecodeState
from k3.serve.sequence import Sequence


@dataclass(eq=False, slots=True)
class Part:
    """One state and the sequence of each of its rows, None for one that has gone."""

    rows: list[Sequence | None]
    state: DecodeState

    @property
    def sequences(self) -> list[Sequence]:
        """Those that are still there."""
        return [s for s in self.rows if s]


class Batch:
    """All that decodes in a class. A state is copied only when its rows change."""

    def __init__(self) -> None:
        self.parts: list[Part] = []

    @property
    def rows(self) -> list[Sequence]:
        """The sequences of all parts."""
        return [s for part in self.parts for s in part.sequences]

    @property
    def nbytes(self) -> int:
        """Bytes of the states that are held."""
        return sum(part.state.nbytes for part in self.parts)

    def add(self, rows: list[Sequence], state: DecodeState) -> None:
        """Take sequences in, with the state that has a row for each."""
        assert len(rows) == state.batch, "a sequence has one row"
        if rows:
            self.parts.append(Part([*rows], state))

    def drop(self, sequence: Sequence) -> None:
        """Let a sequence go; its row is freed when the part is next copied."""
        for part in self.parts:
            part.rows = [None if s is sequence else s for s in part.rows]
        self.parts = [part for part in self.parts if any(part.rows)]

    def settle(self, most: int) -> list[Part]:
        """Return parts without gaps, of at most `most` rows each, for a pass each."""
        bins: list[list[Part]] = []
        for part in self.parts:
            for piece in _pieces(part, most):
                size = len(piece.rows)
                fits = (b for b in bins if _size(b) + size <= most)
                if (found := next(fits, None)) is not None:
                    found.append(piece)
                else:
                    bins.append([piece])
        self.parts = [_joined(parts) for parts in bins]
        return list(self.parts)


def _pieces(part: Part, most: int) -> list[Part]:
    """A part without its gaps, cut where it has too many rows."""
    live = [row for row, s in enumerate(part.rows) if s]
    if len(live) == len(part.rows) <= most:
        return [part]
    return [
        Part([part.rows[row] for row in rows], part.state.select(rows))
        for rows in (live[at : at + most] for at in range(0, len(live), most))
    ]


def _joined(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    state = DecodeState.join([part.state for part in parts])
    return Part([s for part in parts for s in part.rows], state)


def _size(parts: list[Part]) -> int:
    return sum(len(part.rows) for part in parts)
