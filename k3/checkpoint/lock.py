"""One saver a directory: a lock that ends with its process, and names of its own."""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from k3.errors import CheckpointError

LOCK = ".saving.lock"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Make `folder` and keep every other saver out of it, thread or process.

    The kernel frees the lock of a process that dies: a lock file that a kill left
    behind is nobody's, whoever has its number now, and the next saver takes it.
    Raises: CheckpointError while another save is under way.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    number = _taken(path)
    try:
        yield
    finally:
        # Gone before it is free: who opened it meanwhile sees that it is gone.
        path.unlink(missing_ok=True)
        os.close(number)


def temporary(folder: Path, name: str) -> Path:
    """Return a hidden name to write a file under: no other saver has the same."""
    return folder / f".{name}.{os.getpid()}-{secrets.token_hex(4)}.saving"


def _taken(path: Path) -> int:
    """Return the open lock file at `path`, locked and holding our number."""
    while True:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(number, 20, 0).decode("ascii", "replace").strip()
            os.close(number)
            raise CheckpointError(
                f"one save at a time writes a directory: {path.parent} is being "
                f"written by process {owner or 'unknown'}; wait for it, or save "
                "elsewhere"
            ) from None
        if _is_at(number, path):
            os.ftruncate(number, 0)
            os.pwrite(number, str(os.getpid()).encode(), 0)
            return number
        os.close(number)


def _is_at(number: int, path: Path) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(number), path.stat())
    except FileNotFoundError:
        return False
