"""The falsifier finds concrete inputs, and never for a true statement."""

from fractions import Fraction

import pytest

from k3.logic import analysis, falsify
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL, fun, list_of, named
from k3.logic.syntax import conj, cons, eq, forall, implies, ite, nil, real, var

x, y = var("x", REAL), var("y", REAL)
xs = var("xs", list_of(named("E")))
n = var("n", INT)


def test_a_false_statement_comes_with_both_sides():
    found = falsify.falsify(forall([x, y], eq(x * y, x + y)))
    assert found is not None
    assert found.left != found.right
    assert "x = " in str(found)
    assert "against" in str(found)


@pytest.mark.parametrize(
    "phi",
    [
        forall([x], x * x >= 0),
        forall([x, y], implies(x < y, x <= y)),
        forall([x], analysis.EXP(x) >= x + 1),
        forall([x], implies(x > 0, eq(analysis.EXP(analysis.LOG(x)), x))),
        forall([x], eq(x / 0, 1)),  # not specified, so not refuted
        forall([xs], ~eq(cons(var("e", named("E")), nil(named("E"))), xs) | eq(xs, xs)),
    ],
)
def test_a_true_or_unspecified_statement_is_not_refuted(phi):
    if phi.free:
        phi = forall(list(phi.free), phi)
    assert falsify.falsify(phi, tries=200) is None


def test_enclosures_decide_real_functions():
    below = forall([x], analysis.EXP(x) < 2)
    assert falsify.falsify(below) is not None
    assert falsify.falsify(forall([x], analysis.SQRT(x) <= 1), given={"x": Fraction(4)})


def test_given_inputs_are_used():
    phi = forall([x], ~eq(x, Fraction(22, 7) * real(1)))
    assert falsify.falsify(phi) is None
    found = falsify.falsify(phi, given={"x": Fraction(22, 7)})
    assert found is not None
    assert found.inputs == {"x": "22/7"}


def test_a_given_function_prints_as_what_it_was_asked():
    f = var("f", fun(REAL, REAL))
    found = falsify.falsify(
        forall([f], eq(f(real(2)), 0)), given={"f": lambda v: v * 3}
    )
    assert str(found) == "f = {2 ↦ 6}: f(2) = 0 is false: 6 against 0"


def test_a_statement_without_variables_prints_no_inputs():
    found = falsify.falsify(eq(real(2), 3))
    assert str(found) == "2 = 3 is false: 2 against 3"


def test_recursion_and_premises_are_evaluated():
    size = recursive(
        "falsify.size", [xs], REAL, lambda: real(0), lambda h, t, rec: rec() + 1
    )
    assert falsify.falsify(forall([xs], size(xs) < 2)) is not None
    assert falsify.falsify(forall([xs], implies(size(xs) < 0, size(xs) < -1))) is None
    inner = forall(
        [xs], conj(size(xs) >= 0, size(ite(size(xs) > 1, xs, nil(xs.sort.args[0]))) < 1)
    )
    assert falsify.falsify(inner) is not None
