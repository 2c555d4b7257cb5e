"""Loss against compute of two variants: a sweep, a power law each, and their ratio.

The method of the report's Figure 7 on a small scale: L = a C^-alpha is fitted to the
last losses of each variant's runs, and the ratio is that of the computes at which both
laws reach the same loss.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from k3.config import K3Config, sizes
from k3.data.packing import Row
from k3.model import Model
from k3.model.attn_res import Depth
from k3.model.linear import RMSNorm
from k3.train import plot, trial
from k3.train.feed import Rows
from k3.train.plot import Axis, Curve
from k3.train.recipe import Recipe

DRAWS = 2000
LEVELS = (0.05, 0.95)


class Sum(Depth):
    """Depth without AttnRes: every sublayer reads the plain sum of all before it."""

    __slots__ = ()

    def commit(self) -> None:
        """Go on with the same sum."""

    def retrieve(
        self, norm: RMSNorm, proj: nn.Linear, dtype: torch.dtype
    ) -> Float[Tensor, "B T D"]:
        """The sum itself."""
        assert self.prefix is not None
        return self.prefix


def without_attn_res(model: Model) -> None:
    """Take AttnRes out of a fresh model; its queries and norms stay, unused."""
    model.language_model.model.depth = Sum


VARIANTS: dict[str, trial.Prepare] = {
    "AttnRes": lambda model: None,
    "plain sums": without_attn_res,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One run: active parameters, operations of training, held-out loss in nats."""

    variant: str
    seed: int
    parameters: int
    operations: float
    loss: float


@dataclass(frozen=True, slots=True)
class Law:
    """loss = exp(log_a) C^-alpha."""

    log_a: float
    alpha: float

    def loss(self, operations: float) -> float:
        """The loss at so many operations."""
        return math.exp(self.log_a - self.alpha * math.log(operations))

    def log_operations(self, loss: float) -> float:
        """log of the operations at which the law reaches a loss."""
        return (self.log_a - math.log(loss)) / self.alpha


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """Both laws, and how much more compute the second variant takes at equal loss.

    `low` and `high` hold 90 % of the ratios of laws fitted to redrawn residuals.
    """

    laws: dict[str, Law]
    at_loss: float
    ratio: float
    low: float
    high: float


def operations(config: K3Config, tokens: int) -> float:
    """6 N D: active parameters, forward and backward, over so many tokens."""
    return 6.0 * sizes.parameters(config).active * tokens


def sweep(
    recipes: Sequence[Recipe],
    data: Callable[[int], Rows],
    held: Sequence[Row],
    *,
    seeds: Sequence[int] = (0, 1),
    variants: dict[str, trial.Prepare] = VARIANTS,
    tell: Callable[[Point], None] = lambda point: None,
) -> list[Point]:
    """Train every recipe in every variant from every seed, small ones first."""
    points = []
    for recipe in recipes:
        for seed in seeds:
            for name, prepare in variants.items():
                chosen = recipe.set({"seed": seed})
                model, _ = trial.run(chosen, data, prepare)
                tokens = chosen.steps * chosen.batch * chosen.tokens
                point = Point(
                    variant=name,
                    seed=seed,
                    parameters=sizes.parameters(chosen.config).active,
                    operations=operations(chosen.config, tokens),
                    loss=trial.loss(model, held),
                )
                points.append(point)
                tell(point)
    return points


def fit(points: Sequence[Point]) -> Law:
    """The power law of least squares in logarithms."""
    x, y = _logs(points)
    return _line(x, y)


def compare(points: Sequence[Point], *, draws: int = DRAWS, seed: int = 0) -> Result:
    """Fit two variants, the better first, and their ratio at a loss both reached.

    The loss is the middle, in logarithms, of the range that both have runs in. The
    interval is a bootstrap of residuals, scaled for the two fitted numbers.
    """
    names = list(dict.fromkeys(p.variant for p in points))
    assert len(names) == 2, names
    groups = [[p for p in points if p.variant == name] for name in names]
    laws = [fit(group) for group in groups]
    low = max(min(p.loss for p in group) for group in groups)
    high = min(max(p.loss for p in group) for group in groups)
    at = math.sqrt(low * high)
    generator = np.random.default_rng(seed)
    redrawn = [
        _redraw(g, law, draws, generator) for g, law in zip(groups, laws, strict=True)
    ]
    ratios = [
        math.exp(second.log_operations(at) - first.log_operations(at))
        for first, second in zip(*redrawn, strict=True)
    ]
    ends = np.quantile(ratios, LEVELS)
    return Result(
        laws=dict(zip(names, laws, strict=True)),
        at_loss=at,
        ratio=math.exp(laws[1].log_operations(at) - laws[0].log_operations(at)),
        low=float(ends[0]),
        high=float(ends[1]),
    )


def picture(points: Sequence[Point], result: Result) -> str:
    """Runs as dots and laws as lines, an SVG."""
    computes = [p.operations for p in points]
    ends = (min(computes), max(computes))
    curves = []
    for i, (name, law) in enumerate(result.laws.items()):
        runs = [(p.operations, p.loss) for p in points if p.variant == name]
        line = [(c, law.loss(c)) for c in ends]
        curves.append(Curve(name=name, points=runs, dots=True, colour=i))
        label = f"exponent {law.alpha:.3f}"
        curves.append(Curve(name=label, points=line, colour=i))
    title = (
        f"Equal loss at {result.ratio:.2f} times the compute "
        f"({result.low:.2f} to {result.high:.2f})"
    )
    x = Axis(label="operations of training, 6 N D", log=True)
    y = Axis(label="held-out loss, nats a token", log=True)
    return plot.chart(title, curves, x=x, y=y)


def _logs(points: Sequence[Point]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x = np.log([p.operations for p in points])
    return x, np.log([p.loss for p in points])


def _line(x: NDArray[np.float64], y: NDArray[np.float64]) -> Law:
    slope, start = np.polyfit(x, y, 1)
    return Law(float(start), float(-slope))


def _redraw(
    points: Sequence[Point], law: Law, draws: int, generator: np.random.Generator
) -> list[Law]:
    """Laws of losses whose residuals are drawn anew from those of the fit."""
    x, y = _logs(points)
    line = law.log_a - law.alpha * x
    left = (y - line) * math.sqrt(len(x) / max(1, len(x) - 2))
    chosen = generator.integers(len(x), size=(draws, len(x)))
    return [_line(x, line + left[row]) for row in chosen]
