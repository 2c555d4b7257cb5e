"""The rows of each step, read while the step before is computed."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from types import TracebackType
from typing import Protocol

from k3.data.packing import Row
from k3.train.stages import Stage


class Rows(Protocol):
    """Rows by number, as k3.data.mixture.Mixture gives them: pure functions of it."""

    @property
    def domains(self) -> tuple[str, ...]:
        """The names behind the numbers in `Row.domains`, for all lengths the same."""

    def row(self, number: int) -> Row:
        """The row of a number that counts through the run."""


class Feed:
    """`make(tokens)` gives the rows of one length; ranks share out those of a step.

    The position in the data is the number of rows read so far, so nothing but it has
    to be kept to go on.
    """

    def __init__(
        self, make: Callable[[int], Rows], *, rank: int = 0, world: int = 1
    ) -> None:
        self._make = cache(make)
        self.domains: tuple[str, ...] = ()
        self._rank, self._world = rank, world
        self._thread = ThreadPoolExecutor(1, "rows")
        self._next: tuple[tuple[int, Stage], Future[list[Row]]] | None = None

    def take(self, position: int, stage: Stage) -> list[Row]:
        """This rank's rows of the step that begins at `position`."""
        wanted, upcoming = (position, stage), self._next
        self._next = None
        if upcoming is not None and upcoming[0] == wanted:
            return upcoming[1].result()
        return self._read(position, stage)

    def prepare(self, position: int, stage: Stage) -> None:
        """Begin to read what will be taken next."""
        found = self._thread.submit(self._read, position, stage)
        self._next = (position, stage), found

    def _read(self, position: int, stage: Stage) -> list[Row]:
        rows = self._make(stage.tokens)
        self.domains = rows.domains
        numbers = range(position + self._rank, position + stage.batch, self._world)
        return [rows.row(number) for number in numbers]

    def __enter__(self) -> "Feed":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the thread go."""
        self._next = None
        self._thread.shutdown(cancel_futures=True)
