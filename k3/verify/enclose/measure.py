"""How values lie in balls: a machine's, and the equation's."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from k3 import errors
from k3.verify.enclose import equations
from k3.verify.enclose.report import Ball, ModuleReport, Part


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
    outside = (gap > allowed) & ~vacuous
    share = torch.where(vacuous | (gap == 0), 0.0, gap / allowed)
    counts = x.numel(), int(outside.sum()), int(vacuous.sum())
    if not x.numel():
        return Part(name, *counts, radius=0.0, fill=0.0)
    at = tuple(int(i) for i in torch.unravel_index(share.argmax(), share.shape))
    widest = ball.r[~vacuous].max() if not vacuous.all() else torch.tensor(torch.inf)
    return Part(
        name,
        *counts,
        radius=float(allowed[at] if outside.any() else widest),
        fill=float(share[at]),
        at=at,
        got=float(x[at]),
        centre=float(ball.m[at]),
    )


def equation(
    report: ModuleReport,
    meaning: Mapping[str, Ball],
    values: dict[str, Any],
    given: Mapping[str, Tensor],
) -> None:
    """The spec's values in the float64 balls of the program, and the true error."""
    routed = values.pop("routed", [])
    report.flips = [row for row, r in enumerate(routed) if r.best != r.taken]
    report.equation, errors_ = [], []
    for name, value in values.items():
        x, loose = (torch.as_tensor(v) for v in equations.floats(value))
        inner = tuple(slice(n) for n in x.shape)
        ball = Ball(meaning[name].m[inner], meaning[name].r[inner])
        report.equation.append(part(name, x, ball, loose))
        if name.startswith("out") and name in given and x.numel():
            errors_.append(float((given[name].double() - x).abs().max()))
    report.error = max(errors_, default=math.nan)


def flips(report: ModuleReport, certain: Sequence[bool]) -> None:
    """A route that rounding cannot have turned is not the equation's: that is wrong."""
    wrong = [row for row in report.flips if certain[row]]
    if wrong:
        rows = ", ".join(map(str, wrong[:8]))
        report.impossible.append(
            f"top-k: the experts of rows {rows} are certain and not the equation's"
        )
