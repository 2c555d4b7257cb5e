"""Tactics: what they find, and at which level."""

import pytest

from k3.errors import ProofError
from k3.logic import auto, kernel, log, psatz, rewrite
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL, fun, list_of, named
from k3.logic.syntax import absolute, cons, eq, forall, implies, lam, real, var

x, y, z = (var(n, REAL) for n in "xyz")
n = var("n", INT)
f = var("f", fun(INT, REAL))


def total():
    return recursive(
        "auto.sum", [f, n], REAL, lambda f: real(0), lambda n, rec, f: rec(f) + f(n)
    )


def test_linear_goals_need_no_solver_to_be_believed():
    th = auto.have(x <= z, *auto.suppose(x <= y, y <= z))
    assert log.level(th) == "K"
    assert th.hyps == {x <= y, y <= z}


def test_products_of_facts():
    hyps = auto.suppose(x >= 1, y >= x)
    assert psatz.prove(x * y >= 1, hyps, degree=2).concl is (x * y >= 1)
    with pytest.raises(ProofError, match="no certificate"):
        psatz.prove(x * y >= 2, hyps, degree=2)


def test_absolute_values_split_into_cases():
    th = auto.exact(absolute(x + y) <= absolute(x) + absolute(y))
    assert log.level(th) == "K"


def test_induction_over_numbers_by_rewriting():
    s, g = total(), var("g", fun(INT, REAL))
    both = lam([n], f(n) + g(n))
    phi = forall([f, g], eq(s(both, n), s(f, n) + s(g, n)))
    th = auto.by_induction(n, phi, defs=[s])
    assert th.concl is forall([n], implies(n >= 0, phi))


def test_induction_over_lists_and_a_false_goal():
    e = named("E")
    xs = var("xs", list_of(e))
    size = recursive(
        "auto.size", [xs], REAL, lambda: real(0), lambda h, t, rec: rec() + 1
    )
    assert auto.by_induction(xs, size(xs) >= 0, defs=[size])
    with pytest.raises(ProofError):
        auto.by_induction(xs, size(xs) >= 1, defs=[size])
    c = var("c", e)
    assert auto.auto(forall([c, xs], eq(size(cons(c, xs)), size(xs) + 1)), defs=[size])


def test_rewriting_goes_under_binders_and_stops():
    same = kernel.assume(forall([n], eq(f(n), f(n + 1))))
    with pytest.raises(ProofError, match="come to an end"):
        rewrite.equal(eq(f(n), f(n + 5)), [same])
    step = kernel.assume(forall([n], eq(f(n), real(2))))
    th = rewrite.equal(eq(lam([n], f(n) * x), lam([n], x * 2)), [step])
    assert log.level(th) == "K"


def test_a_lemma_is_proved_once_in_a_session():
    from k3.logic import smt

    calls = []

    @auto.lemma
    def reflexive():
        calls.append(1)
        return kernel.refl(x)

    with smt.session():
        assert reflexive() is reflexive()
    with smt.session():
        reflexive()
    assert len(calls) == 2
