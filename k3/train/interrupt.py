"""Ctrl-C and SIGTERM between steps: what must be whole is not cut."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def held() -> Iterator[None]:
    """Let an interruption wait until the block is done; a second one does not wait.

    Only handlers of Python are put off: a signal that is ignored stays ignored, and
    one that ends the process at once leaves nothing that could be torn but memory.
    Outside the main thread no signal arrives, and nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: how for number, how in handlers.items() if callable(how)}
    came: list[int] = []

    def keep(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if len(came) > 1:
            before[signal.Signals(number)](number, frame)

    for number in before:
        signal.signal(number, keep)
    try:
        yield
    finally:
        for number, how in before.items():
            signal.signal(number, how)
    if came:
        before[signal.Signals(came[0])](came[0], None)
