"""The real functions exp, log and sqrt, by the four axioms that all proofs rest on.

Each axiom is a theorem of the real numbers, proved in coq/axioms.v. Sigmoid, tanh
and everything else is defined from these.
"""

from k3.logic.constants import axiom, declare
from k3.logic.sorts import REAL
from k3.logic.syntax import conj, eq, forall, implies, var

EXP = declare("exp", REAL, REAL)
LOG = declare("log", REAL, REAL)
SQRT = declare("sqrt", REAL, REAL)

_x, _y = var("x", REAL), var("y", REAL)
EXP_ADD = axiom("exp_add", forall([_x, _y], eq(EXP(_x + _y), EXP(_x) * EXP(_y))))
EXP_TANGENT = axiom("exp_tangent", forall([_x], _x + 1 <= EXP(_x)))
EXP_LOG = axiom("exp_log", forall([_x], implies(_x > 0, eq(EXP(LOG(_x)), _x))))
SQRT_SQUARE = axiom(
    "sqrt_square",
    forall(
        [_x],
        implies(_x >= 0, conj(SQRT(_x) >= 0, eq(SQRT(_x) * SQRT(_x), _x))),
    ),
)
AXIOMS = (EXP_ADD, EXP_TANGENT, EXP_LOG, SQRT_SQUARE)
