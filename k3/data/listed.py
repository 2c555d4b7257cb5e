"""A list of examples as a source of rows: each one once an epoch, rows well filled."""

from collections.abc import Sequence

from k3.data import order
from k3.data.examples import Example
from k3.errors import RequestError


class Listed:
    """Examples of one domain in rows that are packed once, best fit first.

    An epoch holds every row once, in an order of its own: no example is cut, left out
    or seen twice.
    Raises: RequestError for an empty list.
    """

    def __init__(self, domain: str, examples: Sequence[Example], seed: int = 0) -> None:
        if not examples:
            raise RequestError(f"a source has examples: {domain} got none; give some")
        self.domain, self._examples, self._seed = domain, examples, seed
        self._packed: dict[int, list[list[int]]] = {}

    @property
    def tokens(self) -> int:
        """Tokens of an epoch."""
        return sum(map(len, self._examples))

    def rows_per_epoch(self, tokens: int) -> int:
        """How many rows of this length hold all examples."""
        return len(self._rows(tokens))

    def example(self, index: int) -> Example:
        """The example of a number that counts through all epochs."""
        return self._examples[order.in_epochs(index, len(self._examples), self._seed)]

    def row(self, index: int, tokens: int) -> list[Example]:
        """The examples of a row whose number counts through all epochs.

        Raises: RequestError for an example longer than a row.
        """
        rows = self._rows(tokens)
        place = order.in_epochs(index, len(rows), self._seed)
        return [self._examples[number] for number in rows[place]]

    def _rows(self, tokens: int) -> list[list[int]]:
        if tokens not in self._packed:
            self._packed[tokens] = best_fit([len(e) for e in self._examples], tokens)
        return self._packed[tokens]


def best_fit(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Places of the lengths in rows: the longest first, each where least is left over.

    Raises: RequestError for a length above `tokens`.
    """
    if max(lengths) > tokens:
        raise RequestError(
            f"an example fits into a row: one has {max(lengths)} tokens of {tokens}; "
            "raise tokens or leave it out"
        )
    rows: list[list[int]] = []
    # Rows by how much room they have; few lengths differ, so a scan is short.
    by_room: dict[int, list[int]] = {}
    for place in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        length = lengths[place]
        room = min((r for r in by_room if r >= length and by_room[r]), default=None)
        if room is None:
            rows.append([])
            room, at = tokens, len(rows) - 1
        else:
            at = by_room[room].pop()
            if not by_room[room]:
                del by_room[room]
        rows[at].append(place)
        by_room.setdefault(room - length, []).append(at)
    return rows
