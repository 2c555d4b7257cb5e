"""One module from its real inputs: the machine in its ball, the equation in another.

The ball runs the module's own operations, with the machine's choices, under a rounding
model. A second ball, all in float64, is what the same operations mean over the real
numbers: the spec's value must lie in it. Together: the machine computes the equation.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from k3 import errors
from k3.verify.enclose import arbs, capture, equations, measure
from k3.verify.enclose.ball import Ball as Tensors
from k3.verify.enclose.ball import mapped
from k3.verify.enclose.choices import Choices, Recorder
from k3.verify.enclose.mode import BallMode
from k3.verify.enclose.report import Ball, ModuleReport
from k3.verify.enclose.rounding import BITS, LIBRARY_ULP, Rounding
from k3.verify.exact.run import constants_are_decoded

PRECISION = 256
Program = Callable[..., Any]


@torch.no_grad()
def module(
    program: Program,
    *inputs: Any,
    got: Mapping[str, Tensor] | Tensor | None = None,
    name: str = "",
    ulp: int = LIBRARY_ULP,
    equation: bool | Program = True,
) -> ModuleReport:
    """Enclose a module or function on inputs, caches included; they are not changed.

    got        what a machine made of the same inputs (a native kernel, another port):
               the output, or all values by name as `balls` of the report names them.
               By default the program itself is run.
    ulp        accuracy of library functions, in units in the last place.
    equation   whether to hold the spec's value against the program too; or a function
               over k3.spec that takes the same inputs in Arb, for your own program.

    Raises: RequestError for inputs that are not finite or of a dtype without a
    rounding model, Unsupported for an operation without a rule.
    """
    started, rounding = time.perf_counter(), Rounding(ulp=ulp)
    _check(program, inputs)
    machine, recorded = _machine(program, inputs)
    balls, choices = enclosed(program, inputs, rounding, recorded)
    given = machine if got is None else _given(got, balls)
    kind = getattr(program, "__name__", type(program).__name__)
    report = ModuleReport(name=name, kind=kind, dtype=_dtype(machine), balls=balls)
    report.machine = [measure.part(n, given[n], balls[n]) for n in balls if n in given]
    report.open, report.impossible = choices.open, choices.impossible
    report.assumptions = rounding.lines()
    route = _routes(report, program, choices)
    values = equations.find(program, inputs, equation)
    if values is not None:
        meaning, _ = enclosed(program, inputs, Rounding(declared=False), recorded)
        taken = None if report.impossible else route.rows
        with arbs.precision(PRECISION):
            measure.equation(report, meaning, values(taken), given)
        measure.flips(report, route.certain)
    report.seconds = time.perf_counter() - started
    return report


def enclosed(
    program: Program,
    inputs: Sequence[Any],
    rounding: Rounding,
    recorded: Choices | None = None,
) -> tuple[dict[str, Ball], Choices]:
    """The balls of all that a program makes, and what they say of its choices."""
    followed = recorded or Choices()
    choices = Choices(followed.recorded, followed.given)
    mode = BallMode(rounding, choices)

    def lift(t: Tensor) -> Tensor:
        return mode.lift(t) if t.is_floating_point() else t.clone()

    with torch.inference_mode(False):
        args = mapped(list(inputs), lift)
    with torch.inference_mode(False), mode, constants_are_decoded():
        out = program(*args)
    made = capture.results(out, args)
    return {
        n: Ball(x.m, x.r) for n, x in made.items() if isinstance(x, Tensors)
    }, choices


def _machine(
    program: Program, inputs: Sequence[Any]
) -> tuple[dict[str, Tensor], Choices]:
    """What the program makes as it runs, and the choices of its PyTorch form.

    A native kernel takes no part where operations are watched.
    """
    args = capture.copied(list(inputs))
    made = capture.results(program(*args), args)
    with Recorder() as recorder:
        program(*capture.copied(list(inputs)))
    return made, recorder.choices


def _given(got: Any, balls: Mapping[str, Ball]) -> dict[str, Tensor]:
    named = {"out": got} if isinstance(got, Tensor) else dict(got)
    unknown = sorted(set(named) - set(balls))
    if unknown or not named:
        raise errors.RequestError(
            f"got holds values of the program by name, some of {sorted(balls)}: got "
            f"{unknown or 'none'}; leave out what it does not make"
        )
    return named


def _floats(inputs: Sequence[Any]) -> list[Tensor]:
    found: list[Tensor] = []

    def see(t: Tensor) -> Tensor:
        if t.is_floating_point():
            found.append(t)
        return t

    mapped(list(inputs), see)
    return found


def _dtype(machine: Mapping[str, Tensor]) -> str:
    first = next(iter(machine.values()), None)
    if first is None:
        raise errors.RequestError(
            "an enclosure needs a program that makes floating-point tensors: got none"
        )
    return str(first.dtype).removeprefix("torch.")


def _check(program: Any, inputs: Sequence[Any]) -> None:
    tensors = _floats(inputs)
    weights = program.parameters() if isinstance(program, torch.nn.Module) else ()
    for t in [*tensors, *weights]:
        if t.device.type != "cpu":
            raise errors.RequestError(
                f"balls are computed on the CPU: got a tensor on {t.device}; enclose a "
                "copy of the module there, and give what the device made as got="
            )
        if t.dtype not in BITS:
            known = ", ".join(str(d).removeprefix("torch.") for d in BITS)
            raise errors.RequestError(
                f"a rounding model exists for {known}: got {t.dtype}; convert the input"
            )
        if not bool(torch.isfinite(t).all()):
            at = (~torch.isfinite(t)).nonzero()[0].tolist()
            raise errors.RequestError(
                f"an enclosure starts from finite numbers: got {float(t[tuple(at)])} "
                f"at {at} of shape {tuple(t.shape)}; mend the input or weight"
            )
    if not tensors:
        raise errors.RequestError(
            "an enclosure needs an input of floating-point numbers: got none; pass the "
            "tensors that the module is called with"
        )


@dataclass(frozen=True, slots=True)
class _Route:
    """Experts of every row, None where a program does not route; which are certain."""

    rows: list[tuple[int, ...]] | None
    certain: list[bool]


def _routes(report: ModuleReport, program: Any, choices: Choices) -> _Route:
    """Count what is certain; refuse what no machine takes."""
    found, wanted = _Route(None, []), getattr(program, "k", 0)
    # A router that meets a tie ranks twice; its last order counts.
    for route in choices.routes[-1:] if wanted else choices.routes:
        k = min(wanted or route.taken.shape[1], route.taken.shape[1])
        certain = route.certain(k)
        report.routes += len(certain)
        report.certain += int(certain.sum())
        wrong = int((route.slack[:, :k] < 0).any(-1).sum())
        if wrong:
            report.impossible.append(f"top-k: {wrong} rows that no machine takes")
        rows = [tuple(row) for row in route.taken[:, :k].tolist()]
        found = _Route(rows, certain.tolist())
    return found
