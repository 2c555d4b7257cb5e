"""A long assignment in a sandbox: open diagnostics, hidden checks, few submissions."""

from collections.abc import Mapping
from functools import partial

from k3.data.tasks.lot import Lot, Split
from k3.envs.able import TEXT, able
from k3.envs.autonomous import formula, packing
from k3.envs.autonomous.assignment import DIAGNOSE, PROGRAM, Assignment
from k3.envs.harness.task import Ability, Steps
from k3.envs.judging import judged
from k3.envs.sandbox import Backend, Checkpoint, Limits, Sandbox
from k3.errors import RequestError

DOMAIN = "autonomous"
KINDS = (formula.draw, packing.draw)
SUBMISSIONS = 3
LIMITS = Limits(seconds=20.0)
CASE_SECONDS = 10.0
MOST_CHARS = 20_000
RULES = """\
{words}
You work in a sandbox without network, with python3 and its standard library. {diagnose}
tries {program} on what is open, as often as you like. `work_submit` keeps the files as
they are, at most {most} times; the last ones are judged, once, by {program}'s output on
cases that nobody has seen. What the diagnostics say counts for nothing."""


class Autonomous:
    """Implements `Task`: a sandbox, and checkpoints of what was submitted.

    `why` says what kept the program from being tried, where something did.
    """

    def __init__(self, assignment: Assignment, backend: Backend) -> None:
        self.assignment, self._backend = assignment, backend
        files = {path: text.encode() for path, text in assignment.files.items()}
        self._box = backend.create(files, limits=LIMITS)
        self._kept: list[Checkpoint] = []
        self._score: float | None = None
        self.why = ""

    @property
    def goal(self) -> str:
        """The assignment, and how it is judged."""
        return RULES.format(
            words=self.assignment.words,
            diagnose=f"`python3 {DIAGNOSE}`",
            program=PROGRAM,
            most=SUBMISSIONS,
        )

    @property
    def abilities(self) -> Mapping[str, Ability]:
        """A shell, files, the diagnostics as they were given, and submissions."""
        write = {"path": TEXT, "text": TEXT}
        return {
            "shell": able("Run a command with bash.", self._run, {"command": TEXT}),
            "file_write": able("Write a file.", self._write, write),
            "file_read": able("Read a file.", self._read, {"path": TEXT}),
            "diagnose": able(
                "Run the diagnostics in a copy of the sandbox.", self.diagnose
            ),
            "work_submit": able("Submit the files as they are.", self._keep),
        }

    def submit(self, answer: str) -> None:
        """Judge the last submission."""
        self.score()

    def solve(self) -> Steps:
        """A program that is right on any case, tried and submitted."""
        yield "file_write", {"path": PROGRAM, "text": self.assignment.solution}
        yield "diagnose", {}
        yield "work_submit", {}
        return "done"

    def score(self) -> float:
        """The share of hidden cases that the last submission solves; judged once.

        Raises: CheckpointError where sandboxes are lost whatever is run in them.
        """
        if self._score is None:
            self._score = self._judged() if self._kept else 0.0
        return self._score

    def fork(self) -> "Autonomous":
        """The same sandbox and submissions, on their own from here."""
        made = Autonomous(self.assignment, self._backend)
        made._box.destroy()
        made._box = self._box.fork()
        made._kept, made._score = list(self._kept), self._score
        return made

    def diagnose(self) -> str:
        """What the diagnostics say, as they were given, of the files as they are."""
        copy = self._box.fork()
        try:
            for path, text in self.assignment.files.items():
                copy.write(path, text.encode())
            return _said(copy, ["python3", DIAGNOSE])
        finally:
            copy.destroy()

    def close(self) -> None:
        """End the sandbox."""
        self._box.destroy()

    def _judged(self) -> float:
        """Run the hidden cases in a sandbox made from the last submission."""
        try:
            made = partial(self._backend.create, start=self._kept[-1])
            return judged(made, self._share)
        except RequestError as error:
            self.why = str(error)
            return 0.0

    def _share(self, box: Sandbox) -> float:
        """The share of hidden cases that come out right there."""
        right = 0
        for case in self.assignment.hidden:
            given = case.given.encode()
            ran = box.run(["python3", PROGRAM], stdin=given, seconds=CASE_SECONDS)
            right += ran.code == 0 and case.right(ran.text)
        return right / len(self.assignment.hidden)

    def _run(self, command: str) -> str:
        return _said(self._box, ["bash", "-c", command])

    def _write(self, path: str, text: str) -> str:
        self._box.write(path, text.encode())
        return "written"

    def _read(self, path: str) -> str:
        return self._box.read(path).decode(errors="replace")[:MOST_CHARS]

    def _keep(self) -> str:
        if self._score is not None or len(self._kept) == SUBMISSIONS:
            raise RequestError(
                f"work is submitted at most {SUBMISSIONS} times, before the end: got "
                "one more; the last one stands"
            )
        self._kept.append(self._box.checkpoint())
        return f"kept, {SUBMISSIONS - len(self._kept)} submissions left"


def _said(box: Sandbox, argv: list[str]) -> str:
    """What a command printed, and how it ended if not well."""
    ran = box.run(argv)
    text = (ran.stdout + ran.stderr).decode(errors="replace")[:MOST_CHARS]
    end = f"\n(went over its {ran.limit})" if ran.limit else f"\n(code {ran.code})"
    return text if ran.code == 0 and not ran.limit else text + end


def make(split: Split, index: int, backend: Backend) -> Autonomous:
    """An assignment that belongs to the split; kinds take turns."""
    lot = Lot.of(DOMAIN, split, index)
    while True:
        found = KINDS[index % len(KINDS)](lot.rng)
        if lot.keeps(f"autonomous:{sorted(found.files.items())}"):
            return Autonomous(found, backend)
