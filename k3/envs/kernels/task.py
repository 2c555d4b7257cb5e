"""A kernel to be written in C: right first, then fast."""

from collections.abc import Mapping

from k3.data.tasks.lot import Lot, Split
from k3.envs.able import TEXT, able
from k3.envs.harness.task import Ability, Steps
from k3.envs.kernels import operations, solutions, verdict
from k3.envs.kernels.bench import FLAGS, TIMED, Bench
from k3.envs.kernels.operations import OPERATIONS
from k3.envs.kernels.verdict import Verdict
from k3.envs.sandbox import Backend
from k3.errors import RequestError

DOMAIN = "kernels"
MOST_BYTES = 100_000
MOST_CHECKS = 8
RULES = """\
Write kernel.c, a C file for the system's compiler ({flags}). {words}
Inputs may hold NaN and infinities: then results are those of IEEE arithmetic, NaN or
infinite where float64 is. Finite results must be within {tolerance} of float64, as a
share of the largest value of their row. Shapes are any, from 1 by 1. The kernel is
called many times on the same memory, whose values change; it runs alone, with one
thread, and may only compute, allocate and read files. Speed is measured at {shape}: no
marks up to {least} times the speed of plain loops, full marks from {share} % of the
speed at which the same bytes are copied. Nothing counts if one result is wrong.
`kernel_check` grades it, at most {most} times; submit when it is done."""


class KernelTask:
    """Implements `Task`: one C file as state, graded in a sandbox of its own."""

    def __init__(self, name: str, constant: float, bench: Bench) -> None:
        self.operation, self.constant = OPERATIONS[name], constant
        self.name, self._bench, self._checks = name, bench, 0
        self.source = ""
        self._verdict: Verdict | None = None

    @property
    def goal(self) -> str:
        """The operation, and how it is graded."""
        return RULES.format(
            flags=" ".join(FLAGS),
            words=operations.goal(self.operation, self.constant),
            tolerance=verdict.TOLERANCE,
            shape=f"{TIMED[0]} by {TIMED[1]}",
            least=verdict.LEAST,
            share=round(100 * self.operation.share),
            most=MOST_CHECKS,
        )

    @property
    def abilities(self) -> Mapping[str, Ability]:
        """The file, and a grade of it as it is."""
        return {
            "kernel_write": able("Write kernel.c.", self._write, {"text": TEXT}),
            "kernel_read": able("Read kernel.c.", lambda: self.source or "nothing"),
            "kernel_check": able("Compile and grade kernel.c.", self._check),
        }

    def submit(self, answer: str) -> None:
        """Grade the file as it is."""
        self.verdict()

    def solve(self) -> Steps:
        """A kernel that is fast enough, in C with vectors."""
        yield "kernel_write", {"text": solutions.solution(self.name, self.constant)}
        return "done"

    def verdict(self) -> Verdict:
        """The grade; it is given once."""
        if self._verdict is None:
            self._verdict = self._graded() if self.source else Verdict(error="no file")
        return self._verdict

    def score(self) -> float:
        """0 if anything is wrong, else by speed."""
        return self.verdict().score

    def fork(self) -> "KernelTask":
        """The same file, on its own from here."""
        made = KernelTask(self.name, self.constant, self._bench)
        made.source, made._checks = self.source, self._checks
        return made

    def close(self) -> None:
        """Nothing is held: a sandbox lasts as long as a grade."""

    def _graded(self) -> Verdict:
        return self._bench.grade(self.source, self.operation, self.constant)

    def _write(self, text: str) -> str:
        if self._verdict is not None or len(text.encode()) > MOST_BYTES:
            raise RequestError(
                f"kernel.c has at most {MOST_BYTES} bytes and is submitted once: got "
                f"{len(text.encode())} bytes; write less, and before submitting"
            )
        self.source = text
        return "written"

    def _check(self) -> str:
        if self._checks == MOST_CHECKS:
            raise RequestError(
                f"a kernel is checked at most {MOST_CHECKS} times: got one more; submit"
            )
        self._checks += 1
        return self._graded().text


def make(
    split: Split, index: int, backend: Backend, bench: Bench | None = None
) -> KernelTask:
    """An operation with a constant that belongs to the split; operations take turns."""
    lot = Lot.of(DOMAIN, split, index)
    name = sorted(OPERATIONS)[index % len(OPERATIONS)]
    low, high = OPERATIONS[name].constants
    while True:
        constant = float(f"{low * (high / low) ** lot.rng.random():.3g}")
        if lot.keeps(f"kernel:{name}:{constant}"):
            return KernelTask(name, constant, bench or Bench(backend))
