"""Engine processes behind a router: started, watched, started again when they die."""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette

from k3.errors import RequestError
from k3.serve import router
from k3.serve.pool import Pool

LOG = logging.getLogger("k3.serve")
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
STOP_SECONDS = 30.0
_SIGTERM_WITH_PARENT = 1


@dataclass(slots=True)
class Process:
    """One replica's process. `command(port)` is what runs; it dies with this one."""

    name: str
    command: Callable[[int], Sequence[str]]
    port: int = field(default_factory=lambda: free_port())
    starts: int = 0
    pause: float = FIRST_PAUSE
    _running: subprocess.Popen[bytes] | None = None
    _not_before: float = 0.0

    @property
    def url(self) -> str:
        """Where it listens; the same after a restart."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        """Its process id, None while it does not run."""
        return self._running.pid if self.alive and self._running else None

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._running is not None and self._running.poll() is None

    def start(self) -> None:
        """Start it, in a session of its own: a Ctrl-C is the router's to handle."""
        self.starts += 1
        self._running = subprocess.Popen(
            list(self.command(self.port)),
            start_new_session=True,
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            stdin=subprocess.DEVNULL,
        )
        LOG.info("replica %s: process %s, %s", self.name, self._running.pid, self.url)

    def tend(self, now: float) -> bool:
        """Start it again if it has died and its pause is over; whether it did."""
        if self.alive:
            if now > self._not_before + LONGEST_PAUSE:
                self.pause = FIRST_PAUSE
            return False
        if self._not_before <= now:
            if self.starts:
                LOG.warning("replica %s has ended: starting it again", self.name)
            self._not_before, self.pause = (
                now + self.pause,
                min(2 * self.pause, LONGEST_PAUSE),
            )
            self.start()
            return True
        return False

    def terminate(self) -> None:
        """Ask it to finish what it runs, and end."""
        if self.alive and self._running:
            self._running.send_signal(signal.SIGTERM)

    def end(self, seconds: float) -> None:
        """Wait for its end; kill it when the time is over."""
        if self._running is None:
            return
        try:
            self._running.wait(max(seconds, 0.0))
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait()


def _die_with_parent() -> None:
    """Ask Linux for a SIGTERM when the router is gone, however it ended."""
    ctypes.CDLL(None).prctl(_SIGTERM_WITH_PARENT, signal.SIGTERM)


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Fleet:
    """All replicas' processes and the pool that routes to them."""

    def __init__(self, processes: Sequence[Process]) -> None:
        self.processes = list(processes)
        self.pool = Pool({process.name: process.url for process in processes})

    async def tend(self, seconds: float = 0.5) -> None:
        """Keep every process running."""
        while True:
            for process in self.processes:
                if process.tend(time.monotonic()) and process.starts > 1:
                    self.pool.replicas[process.name].ready = False
                    self.pool.counts["process_restarts"] += 1
            await asyncio.sleep(seconds)

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """End all processes: each finishes what it runs, for at most so long."""
        deadline = time.monotonic() + seconds
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.end(deadline - time.monotonic())


def app(
    fleet: Fleet, *, stop_seconds: float = STOP_SECONDS, **options: Any
) -> Starlette:
    """The router over a fleet that lives as long as the application does."""
    made = router.app(fleet.pool, **options)
    inner = made.router.lifespan_context

    @contextlib.asynccontextmanager
    async def lifespan(owner: Starlette) -> AsyncIterator[None]:
        tending = asyncio.create_task(fleet.tend())
        try:
            async with inner(owner):
                yield
        finally:
            tending.cancel()
            await asyncio.gather(tending, return_exceptions=True)
            await asyncio.to_thread(fleet.stop, stop_seconds)

    made.router.lifespan_context = lifespan
    return made


def fleet(arguments: Sequence[str], replicas: int) -> Fleet:
    """Replicas that run `k3 serve` with these arguments, each on a port of its own.

    Raises: RequestError for less than one replica.
    """
    if replicas < 1:
        raise RequestError(f"replicas must be at least 1: got {replicas}")

    def command(port: int) -> list[str]:
        place = ["--host", "127.0.0.1", "--port", str(port)]
        return [sys.executable, "-m", "k3", "serve", *arguments, *place]

    return Fleet([Process(str(i), command) for i in range(replicas)])


def serve(
    arguments: Sequence[str], replicas: int, *, host: str, port: int, **options: Any
) -> None:
    """Run a fleet behind a router until SIGTERM or Ctrl-C; running requests end first.

    `arguments` are those of `k3 serve` without host, port and replicas; `options`
    those of `app`.
    """
    try:
        import uvicorn
    except ImportError:
        raise RequestError(
            "a server needs the serve extra: pip install 'k3[serve]'"
        ) from None
    made = app(fleet(arguments, replicas), **options)
    LOG.info("router: process %s, %s replicas", os.getpid(), replicas)
    uvicorn.run(
        made,
        host=host,
        port=port,
        log_level="warning",
        # Nobody waits for a client that reads no more.
        timeout_graceful_shutdown=round(options.get("stop_seconds", STOP_SECONDS)),
    )
