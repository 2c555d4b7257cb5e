"""The widget of quantile balancing: an expert's margins, objective and counts."""

import numpy as np

from k3.graph import balance as graph
from k3.graph import primitives as p
from k3.graph.compare import at_least
from k3.graph.term import Block
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import balance


def quantile_graph() -> Block:
    """Eq. 24 and 26: the objective at theta, the counts, and the release's choice."""
    margins = p.real("margins", "M")
    target, theta = p.real("target", ""), p.real("theta", "")
    strict, weak = graph.counts(margins, theta)
    best = graph.threshold(margins, target)
    minimal = at_least(target, strict) * at_least(weak, target)
    outputs = {
        "objective": graph.objective(margins, target, theta),
        "strict": strict,
        "weak": weak,
        "is_minimizer": minimal,
        "threshold": best,
        "lowest": graph.objective(margins, target, best),
    }
    return Block("quantile", "Eq. 24-26 for one expert", outputs)


def quantile(margins, target, theta):  # type: ignore[no-untyped-def]
    """Eq. 24-26: is theta a minimizer, and which one the release takes."""
    margins, theta = np.array(margins), np.float64(theta)
    best = balance.threshold(margins, target)
    return {
        "objective": balance.coordinate_objective(margins, target, theta),
        "strict": balance.exceedance(margins, theta),
        "weak": balance.at_least(margins, theta),
        "is_minimizer": int(balance.is_minimizer(margins, target, theta)),
        "threshold": best,
        "lowest": balance.coordinate_objective(margins, target, best),
    }


QUANTILE = Widget(
    name="quantile-balancing",
    title="Where a threshold balances an expert",
    says="θ is best iff the strict count ≤ target ≤ the weak count: ties need both.",
    controls=(
        Control(
            name="margins",
            value=[0.9, 0.7, 0.5, 0.5, 0.5, 0.2, 0.0, -0.3],
            label="margins s − α, one a token",
            kind="array",
            low=-1.0,
            high=1.0,
            step=0.1,
            least=1,
            most=16,
        ),
        Control(
            name="target", value=3.0, label="target mk/n", low=0.0, high=16.0, step=0.5
        ),
        Control(
            name="theta", value=0.5, label="threshold θ", low=-1.0, high=1.0, step=0.05
        ),
    ),
    graphs={"": quantile_graph},
    python=quantile,
    names={
        "objective": "objective at θ",
        "strict": "margins above θ",
        "weak": "margins at or above θ",
        "is_minimizer": "θ is a minimizer (1 = yes)",
        "threshold": "what the release takes",
        "lowest": "objective there",
    },
)

WIDGETS = (QUANTILE,)
