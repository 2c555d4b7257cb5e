"""The mean over kept positions: its definitions."""

from k3.logic.constants import define
from k3.logic.sorts import BOOL, REAL, fun, list_of, named
from k3.logic.syntax import (
    eq,
    ite,
    lam,
    real,
    var,
)
from k3.proof.lists import append, total
from k3.proof.sums import (
    every,
)

POSITION = named("Position")
kept, f, g, h = (
    var("kept", fun(POSITION, BOOL)),
    *(var(v, fun(POSITION, REAL)) for v in "fgh"),
)
xs, ys = var("xs", list_of(POSITION)), var("ys", list_of(POSITION))
p = var("p", POSITION)
low, high, slack = (var(v, REAL) for v in ("low", "high", "slack"))
ADD, ALL_OF, JOIN = total(POSITION), every(POSITION), append(POSITION)
COUNT = define(
    "kept_count", [kept, xs], ADD(lam([p], ite(kept(p), real(1), real(0))), xs)
)
KEPT_SUM = define(
    "kept_sum", [kept, f, xs], ADD(lam([p], ite(kept(p), f(p), real(0))), xs)
)
# 0 if nothing is kept
MEAN = define(
    "masked_mean",
    [kept, f, xs],
    ite(eq(COUNT(kept, xs), 0), real(0), KEPT_SUM(kept, f, xs) / COUNT(kept, xs)),
)
LAWS = [ADD, ALL_OF, JOIN]
