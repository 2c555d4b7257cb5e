"""A sandbox to work in, through abilities; one that is lost comes back as it was."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from k3.envs.harness.task import Ability
from k3.envs.judging import judged
from k3.envs.sandbox import MIB, Backend, Checkpoint, Limits, Ran, Sandbox
from k3.errors import CheckpointError, RequestError

LIMITS = Limits(seconds=30.0, disk_bytes=16 * MIB, processes=32, output_bytes=200_000)
TRIES = 10
LINES = 200
_TEXT, _LINE = {"type": "string"}, {"type": "integer"}
T = TypeVar("T")


class Workshop:
    """Files in a sandbox that is made at its first use.

    After what may have changed a file a checkpoint is kept. A sandbox that is killed
    is made anew from it, and what it was killed in is done again.
    """

    def __init__(
        self, backend: Backend, files: Mapping[str, bytes], limits: Limits = LIMITS
    ) -> None:
        self._backend, self._files, self._limits = backend, files, limits
        self._box: Sandbox | None = None
        self._saved: Checkpoint | None = None
        self._closed = False

    def use(self, act: Callable[[Sandbox], T], *, changes: bool = True) -> T:
        """Do something in the sandbox.

        Raises: RequestError for what cannot be done, CheckpointError where sandboxes
        are lost again and again.
        """
        for _ in range(TRIES):
            box: Sandbox | None = None
            try:
                box = self._standing()
                made = act(box)
                if changes:
                    self._keep(box)
                return made
            except RequestError as error:
                if self._closed or (box is not None and box.alive):
                    raise
                lost = error
        raise CheckpointError(
            f"a sandbox must stay alive to be worked in: lost {TRIES} in a row "
            f"({lost}); look at what ends them"
        ) from lost

    def judge(self, act: Callable[[Sandbox], T]) -> T:
        """Do something in a fork, so that nothing of it is left here.

        Raises: RequestError for files that cannot be copied, Killed for what ends every
        fork, CheckpointError where sandboxes are lost again and again.
        """
        return judged(
            lambda: self.use(lambda box: _still(box, box.fork), changes=False), act
        )

    def run(self, command: str) -> str:
        """What a line of bash prints, and how it ended unless well."""
        return said(self.use(lambda box: box.run(["bash", "-c", command])))

    def read(self, path: str, start: int = 1, lines: int = LINES) -> str:
        """Lines of a file, from 1, or a sentence."""
        try:
            data = self.use(lambda box: box.read(path), changes=False)
        except RequestError as error:
            return f"Error: {error}"
        found = data.decode(errors="replace").splitlines()
        first = max(1, start)
        return "\n".join(found[first - 1 : first - 1 + max(0, lines)])

    def write(self, path: str, text: str) -> str:
        """Say that a file was written, or why not."""
        data = text.encode("utf-8", "replace")
        try:
            self.use(lambda box: box.write(path, data))
        except RequestError as error:
            return f"Error: {error}"
        return f"{path} has {len(data)} bytes."

    def edit(self, path: str, old: str, new: str) -> str:
        """Put a text in the place of another that stands in a file once."""
        try:
            data = self.use(lambda box: box.read(path), changes=False)
        except RequestError as error:
            return f"Error: {error}"
        text = data.decode(errors="replace")
        count = text.count(old) if old else 0
        if count != 1:
            return (
                f"Error: old must stand in {path} once: it stands there {count} times."
            )
        return self.write(path, text.replace(old, new))

    @property
    def abilities(self) -> dict[str, Ability]:
        """Run, read, write, edit."""
        return {
            "run": Ability(
                words="Run a line of bash in the folder of the work.",
                properties={"command": _TEXT},
                act=self.run,
            ),
            "read": Ability(
                words=f"Read a file, {LINES} lines unless said otherwise.",
                properties={"path": _TEXT, "start": _LINE, "lines": _LINE},
                act=self.read,
                optional=frozenset({"start", "lines"}),
            ),
            "write": Ability(
                words="Write a file anew.",
                properties={"path": _TEXT, "text": _TEXT},
                act=self.write,
            ),
            "edit": Ability(
                words="Change in a file what stands there once, old, to new.",
                properties={"path": _TEXT, "old": _TEXT, "new": _TEXT},
                act=self.edit,
            ),
        }

    def close(self) -> None:
        """End the sandbox; twice is as good as once."""
        self._closed = True
        if self._box is not None:
            self._box.destroy()

    def _keep(self, box: Sandbox) -> None:
        """Keep a checkpoint; where files cannot be copied the one before stays."""
        try:
            self._saved = _still(box, box.checkpoint)
        except RequestError:
            if not box.alive:
                raise

    def _standing(self) -> Sandbox:
        if self._closed:
            raise RequestError("a workshop must be open to be used: got one closed")
        if self._box is None or not self._box.alive:
            if self._saved is None:
                self._box = self._backend.create(self._files, limits=self._limits)
            else:
                self._box = self._backend.create(start=self._saved)
        return self._box


def _still(box: Sandbox, copy: Callable[[], T]) -> T:
    """Copy files: some may be closed to their owner, or go while they are listed."""
    for _ in range(TRIES - 1):
        try:
            return copy()
        except RequestError:
            if not box.alive:
                raise
            box.run(["chmod", "-R", "u+rwX", "."])
    return copy()


def said(ran: Ran) -> str:
    """What a run printed; its exit code unless 0; what it went over."""
    parts = [ran.stdout.decode(errors="replace"), ran.stderr.decode(errors="replace")]
    if ran.limit:
        parts.append(f"[stopped: over its limit of {ran.limit}]")
    elif ran.code:
        parts.append(f"[exit code {ran.code}]")
    return "\n".join(part.rstrip("\n") for part in parts if part.strip())
