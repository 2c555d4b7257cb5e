"""One module from its real inputs: the machine in its ball, the equation in another.

The ball runs the module's own operations, with the machine's choices, under a rounding
model. A second ball, all in float64, is what the same operations mean over the real
numbers: the spec's value must lie in it. Together: the machine computes the equation.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from k3 import errors
from k3.verify.enclose import arbs, capture, equations
from k3.verify.enclose.ball import Ball as Tensors
from k3.verify.enclose.ball import mapped
from k3.verify.enclose.choices import Choices, Recorder
from k3.verify.enclose.mode import BallMode
from k3.verify.enclose.report import Ball, ModuleReport, Part
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
    equation: bool = True,
) -> ModuleReport:
    """Enclose a module or function on inputs, caches included; they are not changed.

    got        what a machine made of the same inputs (a native kernel, another port):
               the output, or all values by name as `balls` of the report names them.
               By default the program itself is run.
    ulp        accuracy of library functions, in units in the last place.
    equation   whether to hold the spec's value against the program too.

    Raises: RequestError for inputs that are not finite or of a dtype without a
    rounding model, Unsupported for an operation without a rule.
    """
    started, rounding = time.perf_counter(), Rounding(ulp=ulp)
    _check(program, inputs)
    machine, recorded = _machine(program, inputs)
    balls, choices = enclosed(program, inputs, rounding, recorded)
    given = machine if got is None else _given(got, balls)
    report = ModuleReport(
        name=name,
        kind=getattr(program, "__name__", type(program).__name__),
        dtype=_dtype(machine),
        balls=balls,
        machine=[part(n, given[n], balls[n]) for n in balls if n in given],
        assumptions=rounding.lines(),
    )
    report.open, report.impossible = choices.open, choices.impossible
    taken = _routes(report, program, choices)
    if equation:
        _equation(report, (program, inputs, recorded), taken, given)
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


def part(name: str, got: Any, ball: Ball, loose: Any = 0.0) -> Part:
    """How a value lies in its ball. Raises: ShapeError if it has another shape."""
    if tuple(got.shape) != tuple(ball.m.shape):
        raise errors.ShapeError(
            f"{name} must have the shape of its ball, {tuple(ball.m.shape)}: got "
            f"{tuple(got.shape)}; give what the program makes of these inputs"
        )
    x = torch.as_tensor(got).double()
    gap, vacuous = (x - ball.m).abs().nan_to_num(torch.inf), ball.r.isinf()
    allowed = ball.r + torch.as_tensor(loose, dtype=torch.float64)
    bad = (gap > allowed) & ~vacuous
    known, share = ball.r[~vacuous], gap / allowed
    share = torch.where(vacuous | (gap == 0), 0.0, share)
    flat = int(share.argmax()) if share.numel() else 0
    at = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), share.shape))
    return Part(
        name=name,
        entries=x.numel(),
        outside=int(bad.sum()),
        vacuous=int(vacuous.sum()),
        radius=float(ball.r[at] if bad.any() else known.max() if len(known) else 0.0),
        fill=float(share[at]) if share.numel() else 0.0,
        at=at if bad.any() else (),
        got=float(x[at]) if bad.any() else 0.0,
        centre=float(ball.m[at]) if bad.any() else 0.0,
    )


def _machine(
    program: Program, inputs: Sequence[Any]
) -> tuple[dict[str, Tensor], Choices]:
    """What the program makes in plain arithmetic, and the choices that it took."""
    args = capture.copied(list(inputs))
    with Recorder() as recorder:
        out = program(*args)
    return capture.results(out, args), recorder.choices


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


def _routes(report: ModuleReport, program: Any, choices: Choices) -> Any:
    """Count what is certain; the experts of every row if the program routes."""
    taken = None
    for route in choices.routes:
        k = min(getattr(program, "k", route.taken.shape[1]), route.taken.shape[1])
        report.routes += len(route.taken)
        report.certain += int(route.certain(k).sum())
        wrong = int((route.slack[:, :k] < 0).any(-1).sum())
        if wrong:
            report.impossible.append(f"top-k: {wrong} rows that no machine takes")
        taken = [tuple(row) for row in route.taken[:, :k].tolist()]
    return taken


def _equation(
    report: ModuleReport, run: Any, taken: Any, given: Mapping[str, Tensor]
) -> None:
    """The spec's values in the float64 balls of the program, and the true error."""
    program, inputs, recorded = run
    equation = equations.find(program, inputs)
    if equation is None:
        return
    meaning, _ = enclosed(program, inputs, Rounding(declared=False), recorded)
    report.equation = []
    with arbs.precision(PRECISION):
        found = equation(program, inputs, None if report.impossible else taken)
        routed = found.pop("routed", [])
        for name, value in found.items():
            x, loose = (torch.as_tensor(v) for v in equations.floats(value))
            inner = tuple(slice(n) for n in x.shape)
            ball = Ball(meaning[name].m[inner], meaning[name].r[inner])
            report.equation.append(part(name, x, ball, loose))
            if name == "out" and name in given and x.numel():
                report.error = float((given[name].double() - x).abs().max())
    rows = (row for row, r in enumerate(routed) if r.best != r.taken)
    report.flips = list(rows)
