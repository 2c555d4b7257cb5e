"""Quantile Balancing as a graph: Eq. 14, 24 and 26 for one expert's margins [M]."""

from k3.graph import primitives as p
from k3.graph.compare import at_least, below, entry, larger
from k3.graph.term import Term, let, spread


def objective(margins: Term, target: Term, theta: Term) -> Term:
    """Eq. 24: target theta + sum max(0, margin - theta). Scalar."""
    over = margins - spread(theta, margins.shape)
    return target * theta + p.total(larger(over, over - over), 0)


def counts(margins: Term, theta: Term) -> tuple[Term, Term]:
    """How many margins lie strictly above theta, and how many at least at it."""
    level = spread(theta, margins.shape)
    return p.total(below(level, margins), 0), p.total(at_least(margins, level), 0)


def threshold(margins: Term, target: Term) -> Term:
    """Eq. 26: the (floor(target) + 1)-th largest margin, or the smallest."""
    ranked = let("ranked", p.gather(margins, p.argsort(margins)))
    places = p.positions("M")
    # floor(target) is the number of places j >= 1 with j <= target.
    steps = places + 1
    floor = p.total(at_least(spread(target, steps.shape), steps), 0)
    last = p.size("M") - 1
    wanted = p.where(p.less(last, floor), last, floor)
    return let("threshold", entry(ranked, wanted))
