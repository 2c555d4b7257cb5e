"""Sandboxes on this machine: bubblewrap around a work folder that lives in memory."""

import concurrent.futures
import contextlib
import itertools
import os
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from k3.envs import bubblewrap, frames
from k3.envs.sandbox import Checkpoint, Limits, Ran
from k3.envs.store import Entry, Store
from k3.errors import RequestError

Answer = tuple[dict[str, Any], bytes]
GRACE_SECONDS = 10.0
"""How long an answer may be late before the sandbox is ended."""


class LocalBackend:
    """Makes local sandboxes; their checkpoints are in one store.

    Raises: RequestError where bubblewrap or user namespaces are missing.
    """

    def __init__(self, store: Store) -> None:
        bubblewrap.check()
        self.store = store

    def create(
        self,
        files: Mapping[str, bytes] | None = None,
        *,
        limits: Limits | None = None,
        start: Checkpoint | None = None,
    ) -> "LocalSandbox":
        """Return a new sandbox, empty or from a checkpoint, with these files added."""
        if limits is None:
            limits = start.limits if start else Limits()
        made = LocalSandbox(self, limits, start.transcript if start else ())
        try:
            if start is not None:
                made.restore(self.store.get(start.tree))
            for path, data in (files or {}).items():
                made.write(path, data)
        except BaseException:
            made.destroy()
            raise
        return made


class LocalSandbox:
    """One bubblewrap process with the program inside; calls may come from threads."""

    def __init__(
        self, backend: LocalBackend, limits: Limits, transcript: tuple[Ran, ...]
    ) -> None:
        self.limits, self._backend = limits, backend
        self._transcript, self._paused = list(transcript), False
        self._process = subprocess.Popen(
            bubblewrap.command(limits),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        self._end = weakref.finalize(self, _end, self._process)
        self._numbers, self._lock = itertools.count(), threading.Lock()
        self._waiting: dict[int, Future[Answer]] = {}
        reader = threading.Thread(
            target=_read, args=(self._process, self._waiting), daemon=True
        )
        reader.start()

    @property
    def transcript(self) -> tuple[Ran, ...]:
        """What was run, in order, from the first ancestor on."""
        return tuple(self._transcript)

    @property
    def alive(self) -> bool:
        """Whether it can still be used."""
        return self._end.alive and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process that holds all others; killing it ends them."""
        return self._process.pid

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        seconds: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Ran:
        """Run a command in the work folder and wait for it.

        A program that is not there gives code 127, as a shell does.
        """
        most = self.limits.seconds if seconds is None else seconds
        limits = {
            "memory_bytes": self.limits.memory_bytes,
            "processes": self.limits.processes,
            "output_bytes": self.limits.output_bytes,
            "files": self.limits.files,
            "seconds": most,
        }
        asked = {"argv": list(argv), "env": dict(env or {}), "limits": limits}
        head, data = self._ask("run", asked, stdin, most + GRACE_SECONDS)
        if "error" in head:
            ran = Ran(argv=tuple(argv), code=127, stderr=head["error"].encode())
        else:
            first = head["sizes"][0]
            ran = Ran(
                argv=tuple(argv),
                code=head["code"],
                stdout=data[:first],
                stderr=data[first:],
                seconds=head["seconds"],
                limit=head["limit"],
            )
        self._transcript.append(ran)
        return ran

    def read(self, path: str) -> bytes:
        """Return a file; a relative path is of the work folder."""
        asked = {"path": path, "most": self.limits.disk_bytes}
        return self._must("read", asked)[1]

    def write(self, path: str, data: bytes) -> None:
        """Write a file, making the folders above it."""
        self._must("write", {"path": path}, data)

    def pause(self) -> None:
        """Stop all processes where they are; no time limit runs meanwhile."""
        self._must("stop", {"stop": True})
        self._paused = True

    def resume(self) -> None:
        """Let them go on."""
        self._must("stop", {"stop": False})
        self._paused = False

    def checkpoint(self) -> Checkpoint:
        """Store files and transcript; the sandbox goes on."""
        head, data = self._must("tree", {"most": self.limits.disk_bytes})
        entries, at = [], 0
        for path, kind, mode, size in head["rows"]:
            entries.append(Entry(path, kind, mode, data[at : at + size]))
            at += size
        tree = self._backend.store.put(entries)
        return Checkpoint(tree=tree, limits=self.limits, transcript=self.transcript)

    def fork(self) -> "LocalSandbox":
        """Return another sandbox with the same files and transcript."""
        return self._backend.create(start=self.checkpoint())

    def restore(self, entries: Sequence[Entry]) -> None:
        """Make the files of a stored tree."""
        rows = [[e.path, e.kind, e.mode, len(e.data)] for e in entries]
        self._must("restore", {"rows": rows}, b"".join(e.data for e in entries))

    def destroy(self) -> None:
        """End all processes and drop the files; twice is as good as once."""
        self._end()

    def _must(self, do: str, header: dict[str, Any], data: bytes = b"") -> Answer:
        head, answer = self._ask(do, header, data, self.limits.seconds + GRACE_SECONDS)
        if "error" in head:
            raise RequestError(
                f"a sandbox could not {do} {header.get('path', 'its files')}: got "
                f"{head['error']}; look at the path and at the limits"
            )
        return head, answer

    def _ask(
        self, do: str, header: dict[str, Any], data: bytes, seconds: float
    ) -> Answer:
        """Send a request and wait; a sandbox that does not answer is ended."""
        number, future = next(self._numbers), Future[Answer]()
        self._waiting[number] = future
        try:
            if not self.alive:
                raise _gone()
            with self._lock:
                frames.send(
                    self._process.stdin, header | {"do": do, "id": number}, data
                )
            return self._wait(future, seconds)
        except (OSError, ValueError) as error:
            raise _gone() from error
        finally:
            self._waiting.pop(number, None)

    def _wait(self, future: Future[Answer], seconds: float) -> Answer:
        """Return the answer; one that is late ends the sandbox, unless it is paused."""
        waited = 0.0
        while not future.done():
            begun = time.monotonic()
            concurrent.futures.wait([future], timeout=min(1.0, seconds))
            waited += 0.0 if self._paused else time.monotonic() - begun
            if waited > seconds:
                self.destroy()
                raise _gone()
        return future.result()


def _gone() -> RequestError:
    return RequestError(
        "a sandbox must be alive to be used: got one that was destroyed or killed; "
        "create another from its last checkpoint"
    )


def _read(
    process: subprocess.Popen[bytes],
    waiting: dict[int, "Future[Answer]"],
) -> None:
    """Hand answers to those who wait; at the end nobody waits any longer."""
    while (frame := frames.receive(process.stdout)) is not None:
        future = waiting.pop(frame[0]["id"], None)
        if future is not None:
            future.set_result(frame)
    for number in list(waiting):
        future = waiting.pop(number, None)
        if future is not None and not future.done():
            future.set_exception(OSError("the sandbox has ended"))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill bubblewrap: with it goes the namespace and all that is in it.

    Its group, since a child that it has just made does not die with it yet, and would
    hold the pipes for good.
    """
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
