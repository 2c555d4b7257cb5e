"""Native kernels at each instruction level that this processor has."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from k3.kernels import choose
from k3.kernels.native import library

LEVELS = library.supported() if library.absent() is None else []


def clear() -> None:
    """Forget which library is loaded."""
    for known in (library.load, library.level, library.function):
        known.cache_clear()
    choose._native = None


@contextmanager
def at_level(level: str) -> Iterator[None]:
    """Run the kernels of this level for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("K3_NATIVE_ISA", level)
        clear()
        try:
            assert library.level() == level
            yield
        finally:
            patch.undo()
            clear()
