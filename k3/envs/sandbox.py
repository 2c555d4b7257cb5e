"""One interface over sandboxes: create, run, pause, resume, checkpoint, fork, destroy.

A sandbox is a file system and the processes in it. A checkpoint holds the files and
the transcript of what was run; processes start anew from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from k3.config import settings

MIB = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a sandbox may use; a run that goes over one ends with its name.

    `memory_bytes` is of one process, `disk_bytes` of all files, `output_bytes` of one
    run's standard output and of its standard error. Files are so many as there are
    pages in `disk_bytes`: an empty one takes memory too.
    """

    memory_bytes: int = 512 * MIB
    disk_bytes: int = 64 * MIB
    processes: int = 64
    seconds: float = 30.0
    output_bytes: int = MIB

    @property
    def files(self) -> int:
        """How many files and folders there may be."""
        return 64 + self.disk_bytes // 4096

    def __post_init__(self) -> None:
        """Refuse limits that let nothing run."""
        settings.check(self, _RULES)


_RULES = [
    ("memory_bytes", *settings.at_least(16 * MIB)),
    ("disk_bytes", *settings.at_least(4096)),
    ("processes", *settings.at_least(2)),
    ("output_bytes", *settings.POSITIVE),
    ("seconds", "above 0 and below a day", lambda value: 0 < value < 86_400),
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """What a command did.

    `code` is its exit status, negative for a signal. `limit` names what it went over:
    "seconds", "processes", "output", "files" or "" for nothing.
    """

    argv: tuple[str, ...]
    code: int
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float = 0.0
    limit: str = ""

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.stdout.decode(errors="replace")


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """Files by the key of their stored tree, and what was run until then."""

    tree: str
    limits: Limits
    transcript: tuple[Ran, ...] = ()


@runtime_checkable
class Sandbox(Protocol):
    """One sandbox; after `destroy`, or a crash, every call is a RequestError."""

    @property
    def transcript(self) -> tuple[Ran, ...]:
        """What was run, in order, from the first ancestor on."""

    @property
    def alive(self) -> bool:
        """Whether it can still be used."""

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        seconds: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Ran:
        """Run a command in the work folder and wait for it."""

    def read(self, path: str) -> bytes:
        """Return a file; a relative path is of the work folder."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file, making the folders above it."""

    def pause(self) -> None:
        """Stop all processes where they are."""

    def resume(self) -> None:
        """Let them go on."""

    def checkpoint(self) -> Checkpoint:
        """Store files and transcript; the sandbox goes on."""

    def fork(self) -> "Sandbox":
        """Return another sandbox with the same files and transcript."""

    def destroy(self) -> None:
        """End all processes and drop the files; twice is as good as once."""


@runtime_checkable
class Backend(Protocol):
    """Where sandboxes come from."""

    def create(
        self,
        files: Mapping[str, bytes] | None = None,
        *,
        limits: Limits | None = None,
        start: Checkpoint | None = None,
    ) -> Sandbox:
        """Return a new sandbox, empty or from a checkpoint, with these files added."""
