"""Show how far a load, save or conversion is: a bar, plain lines, or nothing."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[int, int], None]


@contextmanager
def shown(
    title: str, *, quiet: bool = False, stream: Any = None
) -> Iterator[Progress | None]:
    """Yield a `progress(done, total)` for load, save or convert; None when quiet.

    On a terminal a bar that goes when it is done, elsewhere a line each tenth.
    """
    out = stream or sys.stderr
    if quiet:
        yield None
    elif out.isatty():
        with _bar(title, out) as update:
            yield update
    else:
        yield _lines(title, out)


@contextmanager
def _bar(title: str, out: Any) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), DownloadColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=Console(file=out), transient=True
    ) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(title: str, out: Any) -> Progress:
    tenth = 0

    def update(done: int, total: int) -> None:
        nonlocal tenth
        now = 10 * done // total if total else 10
        if now > tenth:
            tenth = now
            print(f"{title}: {done / 1e6:.1f} of {total / 1e6:.1f} MB", file=out)

    return update
