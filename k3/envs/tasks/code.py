"""A program to write, with visible examples; hidden ones are tried in a fork.

What is expected never enters a sandbox, so a program can neither read nor change it.
"""

import json
from collections.abc import Mapping
from typing import Any

from k3.data.tasks.lot import Lot, Split
from k3.envs.harness.task import Ability, Steps
from k3.envs.sandbox import Backend, Sandbox
from k3.envs.tasks import programs
from k3.envs.tasks.programs import Program
from k3.envs.workshop import Workshop
from k3.errors import RequestError

DOMAIN = "code"
VISIBLE, HIDDEN = 4, 6
SECONDS = 10.0
Case = tuple[Any, Any]
"""An input and what is expected."""

CHECK = """\
import json, subprocess, sys
failed = 0
for given, wanted in json.load(open("examples.json")):
    ran = subprocess.run([sys.executable, "solution.py"], input=json.dumps(given),
                         capture_output=True, text=True)
    if ran.stdout.strip() != json.dumps(wanted):
        failed += 1
        print("input", json.dumps(given), "wanted", json.dumps(wanted))
        print("got", ran.stdout.strip(), ran.stderr.strip()[-500:])
print("failed" if failed else "passed")
"""
GOAL = """\
Write solution.py. It reads {kind} as one line of JSON from standard input and prints \
one line of JSON. What it does, in this order:
{steps}
An empty input is allowed. examples.json holds pairs of an input and its output; \
python3 check.py tries them. Other inputs are tried when you have ended; all must be \
right. End with any answer."""


def make(split: Split, index: int, backend: Backend) -> "Coding":
    """A program of two to four steps that belongs to the split."""
    lot = Lot.of(DOMAIN, split, index)
    kinds = sorted(programs.FAMILIES)
    while True:
        program = programs.draw(lot.rng, kinds[index % len(kinds)], 2 + index // 3 % 3)
        if lot.keeps(f"{DOMAIN}:{program.words}"):
            cases = _cases(lot, program)
            if _tells(cases):
                return Coding(program, cases[:VISIBLE], cases[VISIBLE:], backend)


class Coding:
    """Implements `Task`: 1 if all hidden cases come out right in a fork, else 0.

    `why` says what kept the program from being tried, where something did.
    """

    def __init__(
        self,
        program: Program,
        visible: list[Case],
        hidden: list[Case],
        backend: Backend,
    ) -> None:
        self.program, self._hidden = program, hidden
        examples = json.dumps(visible).encode()
        files = {"examples.json": examples, "check.py": CHECK.encode()}
        self.workshop = Workshop(backend, files)
        self._score: float | None = None
        self.why = ""

    @property
    def goal(self) -> str:
        """What the program does, step by step."""
        numbered = [f"{n}. {words}." for n, words in enumerate(self.program.words, 1)]
        return GOAL.format(kind=self.program.family.words, steps="\n".join(numbered))

    @property
    def abilities(self) -> Mapping[str, Ability]:
        """Those of the workshop."""
        return self.workshop.abilities

    def submit(self, answer: str) -> None:
        """The files are the answer; whatever is said beside them does not count."""
        self.score()

    def solve(self) -> Steps:
        """Write the program by its steps, and try the examples."""
        lines = f"cat > solution.py <<'END'\n{self.program.source}END\npython3 check.py"
        yield "run", {"command": lines}
        return "done"

    def score(self) -> float:
        """1 if all hidden cases come out right; judged once, at the end."""
        if self._score is None:
            try:
                self._score = float(self.workshop.judge(self._is_right))
            except RequestError as error:
                # What cannot be copied into a fork, or ends it, is no program there.
                self._score, self.why = 0.0, str(error)
        return self._score

    def close(self) -> None:
        """End the sandbox."""
        self.workshop.close()

    def _is_right(self, box: Sandbox) -> bool:
        return all(_comes_out(box, given, wanted) for given, wanted in self._hidden)


def _comes_out(box: Sandbox, given: Any, wanted: Any) -> bool:
    line = (json.dumps(given) + "\n").encode()
    ran = box.run(["python3", "solution.py"], stdin=line, seconds=SECONDS)
    if ran.code or ran.limit:
        return False
    try:
        # As text, since Python's True is 1.
        return json.dumps(json.loads(ran.stdout)) == json.dumps(wanted)
    except (ValueError, RecursionError):
        return False


def _cases(lot: Lot, program: Program) -> list[Case]:
    """Different inputs with their outputs; the empty one is among the hidden."""
    empty: Any = "" if program.family.words.startswith("a text") else []
    found: dict[str, Any] = {}
    while len(found) < VISIBLE + HIDDEN - 1:
        given = program.family.example(lot.rng)
        if given != empty:
            found[json.dumps(given)] = given
    return [(given, program.output(given)) for given in [*found.values(), empty]]


def _tells(cases: list[Case]) -> bool:
    """Whether hidden cases tell the program from one that copies or says one thing."""
    hidden = cases[VISIBLE:]
    outputs = {json.dumps(wanted) for _, wanted in hidden}
    changed = sum(given != wanted for given, wanted in hidden)
    return len(outputs) > HIDDEN // 2 and changed >= HIDDEN // 2
