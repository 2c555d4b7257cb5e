"""Attempts to misuse a rule or a convention; every one must be refused."""

from fractions import Fraction

import pytest
from attack import a, b, f, n, refused, sigma, x, xs, y

from k3.logic import analysis, auto, kernel, polynomial, smt
from k3.logic.induction import induct_list, induct_nat
from k3.logic.sorts import INT, REAL, fun
from k3.logic.syntax import (
    FALSE,
    TRUE,
    conj,
    eq,
    forall,
    implies,
    integer,
    lam,
    nil,
    pair,
    real,
    to_real,
    var,
)
from k3.logic.terms import make


def test_modus_ponens_needs_its_premise():
    rule = kernel.assume(implies(x < 0, x < 1))
    with refused("the premise is"):
        kernel.mp(rule, kernel.assume(y < 0))
    with refused("of the form =>"):
        kernel.mp(kernel.assume(x < 0), kernel.assume(x < 0))


def test_no_projection_from_an_implication():
    with refused("of the form and"):
        kernel.conj_elim(kernel.assume(implies(FALSE, FALSE)), 1)
    with refused("2 parts"):
        kernel.conj_elim(kernel.assume(conj(TRUE, FALSE)), 2)
    with refused("2 parts"):
        kernel.conj_elim(kernel.assume(conj(TRUE, FALSE)), -1)


def test_equivalence_needs_both_directions():
    one = kernel.assume(implies(x < 0, x < 1))
    with refused("converse"):
        kernel.iff_intro(one, one)


def test_equations_chain_only_at_the_same_middle():
    with refused("middles"):
        kernel.trans(kernel.assume(eq(x, y)), kernel.assume(eq(x, y)))


def test_congruence_does_not_go_under_binders():
    t = lam([x], x)
    with refused("every part"):
        kernel.congr(t, kernel.refl(x))
    with refused("not about the part"):
        kernel.congr(x + y, kernel.refl(y), kernel.refl(x))


def test_cases_prove_one_statement():
    with refused("same statement"):
        kernel.by_cases(x < 0, kernel.assume(x < 0), kernel.assume(~(x < 0)))


def test_induction_checks_base_step_and_hypotheses():
    good = kernel.refl(nil(INT))
    phi = eq(xs, nil(INT))
    with refused("the induction needs"):
        induct_list(xs, phi, good, kernel.refl(xs))
    with refused("list variable"):
        induct_list(x, phi, good, good)
    zero = kernel.ground(integer(0) <= 0)
    with refused("the induction needs"):
        induct_nat(n, n <= 0, zero, zero)


def test_induction_over_integers_says_nothing_below_zero():
    total = sigma()
    th = auto.by_induction(n, forall([f], eq(total(f, n), total(f, n))), defs=[total])
    phi = forall([f], eq(total(f, n), total(f, n)))
    assert th.concl is forall([n], implies(integer(0) <= n, phi))


@pytest.mark.parametrize(
    "goal",
    [
        eq(a / real(0), real(0)),
        eq(a * (real(1) / a), real(1)),
        eq(make("hd", (nil(INT),)), integer(0)),
        eq(make("tl", (nil(INT),)), nil(INT)),
        eq(a / b * b, a),
        implies(a * b > 0, a > 0),
        eq(pair(a, b), pair(b, a)),
        FALSE,
    ],
)
def test_unspecified_values_stay_unspecified(goal):
    with refused("z3 says sat, cvc5 says sat"):
        kernel.ground(goal)


def test_the_empty_sum_and_sums_below_zero():
    total = sigma()
    assert auto.auto(forall([f], eq(total(f, integer(0)), 0)), defs=[total])
    with refused():
        auto.auto(forall([f], eq(total(f, integer(-1)), 0)), defs=[total])
    with refused():
        auto.auto(
            forall([n], eq(total(lam([x], real(1)), n), to_real(n))), defs=[total]
        )


def test_a_ring_identity_does_not_divide():
    with refused("not the same polynomial"):
        kernel.ring(a / b * b, a)
    with refused("not the same polynomial"):
        kernel.ring(a / real(0), real(0))


@pytest.mark.parametrize(
    "entries",
    [
        [((0,), Fraction(-1))],  # a negative weight on an inequality
        [((0, 1), Fraction(1))],  # does not cancel
        [((5,), Fraction(1))],  # a fact that is not there
        [((-1,), Fraction(1))],
        [((True,), Fraction(1))],
        [((), Fraction(-1))],  # the empty product is not a fact
        [((0,), 1.0)],
        [],
    ],
)
def test_a_wrong_certificate(entries):
    facts = [polynomial.Fact({(1,): Fraction(1)}, ">=")] * 2
    assert not polynomial.refutes(facts, [polynomial.Entry(*e) for e in entries])
    with refused("does not prove"):
        kernel.certificate(a < a, [], {(): [entries]})


def test_a_certificate_covers_every_case():
    goal = real(0) <= make("ite", (a <= 0, real(0), real(-1)))
    entries = [((1,), Fraction(1))]
    with refused("does not prove"):
        kernel.certificate(goal, [], {(True,): [entries]})


def test_one_solver_is_not_enough(monkeypatch):
    for verdict in [("unsat", "unknown"), ("unknown", "unsat"), ("sat", "unsat")]:
        monkeypatch.setattr(smt, "ask", lambda text, v=verdict: v)
        with refused("cvc5 says"):
            kernel.ground(FALSE)


def test_a_quantifier_in_an_obligation_is_opaque():
    every = kernel.assume(forall([x], x < 0))
    with refused("sat"):
        kernel.ground(integer(0) < 0, [every])


def test_a_function_variable_is_not_extensional_for_the_solvers():
    g = var("g", fun(INT, REAL))
    with refused("sat"):
        kernel.ground(eq(f, g), [kernel.assume(eq(f(x), g(x)))])


def test_the_axioms_are_the_four_of_analysis():
    names = {name for th in analysis.AXIOMS for name, _ in th.axioms}
    assert names == {"exp_add", "exp_tangent", "exp_log", "sqrt_square"}
