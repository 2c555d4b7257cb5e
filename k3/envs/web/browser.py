"""One chromium behind bubblewrap's walls, without network, in a thread of its own."""

import contextlib
import functools
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from k3.envs import bubblewrap
from k3.errors import RequestError

T = TypeVar("T")
ARGUMENTS = (
    # The walls around it are bubblewrap's; its own would need what those take away.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-blink-features=AutomationControlled",
    "--font-render-hinting=none",
)
FOLDER_BYTES = 256 << 20
READ = ("/etc/fonts", "/etc/chromium", "/etc/chromium.d")


class Browser:
    """A browser that any thread may use: `do` runs a function where it lives.

    A page that does not answer within `patience_s` is given up; `drawn` keeps the
    pictures of sites by their specification.

    Raises: RequestError where playwright, chromium or bubblewrap are missing.
    """

    def __init__(self, patience_s: float = 30.0) -> None:
        self.patience_s = patience_s
        self.drawn: dict[str, list[np.ndarray]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="browser")
        self._folder = tempfile.mkdtemp(prefix="k3-browser-")
        try:
            self.do(self._start)
        except BaseException:
            self.close()
            raise

    def do(self, act: Callable[..., T], *given: Any) -> T:
        """What a function returns, called in the browser's thread."""
        return self._thread.submit(act, *given).result()

    @property
    def alive(self) -> bool:
        """Whether chromium still runs; only within `do`."""
        return bool(self._browser.is_connected())

    def revive(self) -> None:
        """Start chromium anew, after it has died; only within `do`."""
        self._browser = self._driver.chromium.launch(
            executable_path=walled(Path(self._folder)), args=list(ARGUMENTS)
        )

    def context(self, **options: Any) -> Any:
        """A fresh profile without network; only within `do`."""
        if not self.alive:
            self.revive()
        return self._browser.new_context(offline=True, **options)

    @contextlib.contextmanager
    def bounded(self) -> Iterator[None]:
        """End chromium where an act takes longer than its patience.

        For what the driver itself waits for without end, as for a count.
        """
        timer = threading.Timer(self.patience_s, self._kill)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def close(self) -> None:
        """End the browser; twice is as good as once."""
        if Path(self._folder).exists():
            self._thread.submit(self._stop).result()
            self._thread.shutdown()
            shutil.rmtree(self._folder)

    def _start(self) -> None:
        try:
            from playwright.sync_api import sync_playwright
        except ImportError as error:
            raise RequestError(
                "pages are graded with playwright: got none; pip install 'k3[envs]'"
            ) from error
        self._driver = sync_playwright().start()
        self.revive()

    def _kill(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(Path(self._folder, "pid").read_text()), signal.SIGKILL)

    def _stop(self) -> None:
        if hasattr(self, "_browser"):
            self._browser.close()
        if hasattr(self, "_driver"):
            self._driver.stop()


@functools.cache
def shared() -> Browser:
    """The browser of this process; it ends with it."""
    import atexit

    made = Browser()
    atexit.register(made.close)
    return made


def walled(folder: Path) -> Path:
    """A program in `folder` that starts chromium with nothing but the system's files.

    Raises: RequestError.
    """
    found = shutil.which("chromium")
    if found is None:
        raise RequestError(
            "pages are graded in chromium: got none on the path; install the system's "
            "package chromium"
        )
    walls = [bubblewrap.check(), "--unshare-all", "--die-with-parent", "--new-session"]
    walls += ["--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME"]
    walls += ["/tmp", "--uid", str(bubblewrap.USER), "--gid", str(bubblewrap.USER)]
    walls += [*bubblewrap.system(), "--proc", "/proc", "--dev", "/dev"]
    for path in READ:
        walls += ["--ro-bind-try", path, path]
    for path in ("/dev/shm", "/tmp"):
        walls += ["--size", str(FOLDER_BYTES), "--tmpfs", path]
    walls += ["--remount-ro", "/dev", "--", found]
    program = folder / "chromium"
    program.write_text(
        f'#!/bin/sh\necho $$ > {folder}/pid\nexec {" ".join(walls)} "$@"\n'
    )
    os.chmod(program, 0o700)
    return program
