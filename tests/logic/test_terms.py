"""Terms: one object per meaning, substitution without capture, β and pairs."""

from hypothesis import given
from hypothesis import strategies as st

from k3.logic import show
from k3.logic.sorts import INT, REAL, fun, pair_of
from k3.logic.syntax import (
    absolute,
    conj,
    eq,
    forall,
    fst,
    implies,
    lam,
    maximum,
    minimum,
    pair,
    real,
    snd,
    var,
)
from k3.logic.terms import bind, make, open_body, subst

x, y, z = (var(n, REAL) for n in "xyz")
f = var("f", fun(REAL, REAL))


def test_renamed_binders_are_one_object():
    assert lam([x], x + z) is lam([y], y + z)
    assert forall([x, y], x < y) is forall([y, z], y < z)
    assert forall([x, y], x < y) is not forall([y, x], x < y)


def test_applying_a_function_reduces():
    assert lam([x, y], x - y)(z, x) is z - x
    twice = lam([x], f(f(x)))
    assert subst(twice, {f: lam([x], x + z)}) is lam([y], y + z + z)


def test_reduction_under_binders_shifts():
    g = var("g", fun(REAL, REAL, REAL))
    curried = lam([x], lam([y], g(x, y))(x))
    assert curried is lam([x], g(x, x))
    inner = subst(lam([x], lam([y], f(x + y))), {f: lam([z], z * z)})
    assert inner is lam([x], lam([y], (x + y) * (x + y)))


def test_pairs_and_parts_reduce():
    p = var("p", pair_of(REAL, INT))
    assert fst(pair(x, y)) is x
    assert snd(pair(x, y)) is y
    assert pair(fst(p), snd(p)) is p


def test_substitution_does_not_capture():
    body = lam([x], x + y)
    assert subst(body, {y: x}) is lam([z], z + x)
    assert subst(body, {y: x}) is not lam([x], x + x)


NAMES = st.sampled_from("xyz")
TREES = st.recursive(
    NAMES | st.integers(-3, 3), lambda t: st.tuples(st.sampled_from("+-*"), t, t)
)


def built(tree):
    """Outside the strategies: the run-time type checks draw random numbers."""
    if isinstance(tree, tuple):
        return make(tree[0], [built(t) for t in tree[1:]])
    return var(tree, REAL) if isinstance(tree, str) else real(tree)


@given(TREES, TREES, NAMES)
def test_binding_then_opening_is_substitution(t, value, v):
    t, value, v = map(built, (t, value, v))
    bound = bind("lam", [v], t)
    assert open_body(bound.args[0], (value,)) is subst(t, {v: value})


@given(TREES, TREES, TREES)
def test_substitutions_compose(t, a, b):
    t, a, b = map(built, (t, a, b))
    once = subst(subst(t, {x: a}), {y: b})
    assert once is subst(t, {x: subst(a, {y: b}), y: b})


def test_printing_is_mathematics():
    goal = forall(
        [x, y], implies(x > 0, eq(absolute(x - y), maximum(x, y) - minimum(x, y)))
    )
    assert show.text(goal) == "(∀x y. 0 < x → |x − y| = max(x, y) − min(x, y))"
    assert show.statement(goal).splitlines() == [
        "for all x : ℝ, y : ℝ",
        "  if 0 < x",
        "  |x − y| = max(x, y) − min(x, y)",
    ]
    assert show.text(x - (y - z)) == "x − (y − z)"
    assert show.text((x + y) * z / 2) == "(x + y)·z / 2"


def test_equal_truth_values_print_as_equivalence_in_brackets():
    same = eq(x <= y, eq(y, z))
    assert show.text(same) == "(x ≤ y) ⇔ (y = z)"
    assert show.text(conj(same, x <= z)) == "((x ≤ y) ⇔ (y = z)) ∧ x ≤ z"
    assert show.text(implies(x <= z, same)) == "x ≤ z → ((x ≤ y) ⇔ (y = z))"
    assert show.text(~same) == "¬((x ≤ y) ⇔ (y = z))"
    assert show.text(~eq(x, y)) == "x ≠ y"


def test_bound_letters_do_not_come_from_another_theorem():
    bias, token = var("bias", REAL), var("token", REAL)
    assert lam([bias], bias + 1) is lam([token], token + 1)
    assert show.text(lam([token], token + 1)) == "(λx. x + 1)"
    assert show.text(lam([token], token + x)) == "(λy. y + x)"
    assert show.text(lam([token], token + var("x#7", REAL))) == "(λy. y + x)"
