"""Snapshots written in a thread of their own while the run goes on."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from types import TracebackType
from typing import Any

from torch import Tensor

from k3.errors import CheckpointError
from k3.train import snapshot


class Writer:
    """Takes a copy of what a snapshot holds and writes it; at most one is on its way.

    What went wrong with one is raised by the call after it, or at the end.
    """

    def __init__(self, directory: Path, keep: int) -> None:
        self.directory, self.keep = directory, keep
        self._thread = ThreadPoolExecutor(1, "snapshot")
        self._pending: Future[None] | None = None

    def begin(self, tensors: Mapping[str, Tensor], facts: dict[str, Any]) -> None:
        """Copy the tensors and begin to write them, once the one before is written.

        Raises: CheckpointError.
        """
        self.wait()
        copies = {name: value.detach().clone() for name, value in tensors.items()}
        self._pending = self._thread.submit(
            snapshot.write, self.directory, copies, deepcopy(facts), self.keep
        )

    def wait(self) -> None:
        """Return once nothing is on its way.

        Raises: CheckpointError for one that could not be written.
        """
        pending, self._pending = self._pending, None
        if pending is None:
            return
        try:
            pending.result()
        except OSError as fault:
            raise CheckpointError(
                f"snapshots must be written to {self.directory}: got {fault}; make "
                "room or permit it, then resume from the one before"
            ) from fault

    def __enter__(self) -> "Writer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for the last one, and let the thread go."""
        try:
            self.wait()
        finally:
            self._thread.shutdown()
