"""Attempts to make the kernel prove something false; every one must be refused."""

import copy
import pickle
from fractions import Fraction

import pytest
from attack import a, f, n, refused, x, xs, y

from k3.logic import auto, constants, kernel
from k3.logic.induction import induct_list
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import BOOL, INT, REAL, Sort, list_of, named, pair_of
from k3.logic.syntax import (
    FALSE,
    TRUE,
    conj,
    cons,
    eq,
    forall,
    implies,
    integer,
    nil,
    real,
    to_real,
    var,
)
from k3.logic.terms import Symbol, Term, bind, make, subst


def test_a_theorem_is_not_constructed():
    with refused("only by the rules"):
        Thm(frozenset(), FALSE)


def test_a_theorem_made_behind_the_constructor_is_not_used():
    forged = object.__new__(Thm)
    values = {"hyps": frozenset(), "concl": FALSE, "axioms": frozenset()}
    for k, v in {**values, "rule": "x", "premises": (), "data": ()}.items():
        object.__setattr__(forged, k, v)
    with refused("not made by a rule"):
        kernel.conj_intro(forged, forged)


def test_a_theorem_is_not_changed():
    th = kernel.assume(FALSE)
    with refused("never change"):
        th.hyps = frozenset()


def test_a_theorem_changed_behind_its_back_is_not_used():
    th = kernel.assume(FALSE)
    object.__setattr__(th, "hyps", frozenset())
    with refused("not made by a rule"):
        kernel.discharge(TRUE, th)


def test_a_theorem_is_not_subclassed():
    with refused("one kind"):
        type("Mine", (Thm,), {})


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_theorem_is_not_copied(duplicate):
    with refused("not copied"):
        duplicate(kernel.refl(x))


def test_something_that_looks_like_a_theorem_is_not_used():
    class Fake:
        hyps, concl, axioms = frozenset(), FALSE, frozenset()

    with refused("not made by a rule"):
        kernel.ground(FALSE, [Fake()])


def test_a_term_is_not_constructed_or_changed_or_copied():
    with refused("only by"):
        Term("lit", (), True)
    with refused("never change"):
        TRUE.data = False
    with refused("not copied"):
        copy.deepcopy(TRUE)


def test_a_bound_name_is_not_captured():
    """∀x. ∃-like instance with a term that mentions a variable of the inner binder."""
    th = kernel.assume(forall([x], ~forall([y], eq(x, y))))
    at_y = kernel.instantiate(th, y)
    assert at_y.concl is not (~forall([y], eq(y, y)))
    assert y in at_y.concl.free


def test_a_crafted_variable_does_not_weaken_an_induction_step():
    """A free variable of φ that is also the variable of the step would weaken it."""
    h = var("h", INT)
    every = recursive(
        "attack.every",
        [x, xs],
        BOOL,
        lambda x: TRUE,
        lambda h, t, rec, x: conj(eq(h, x), rec(x)),
    )
    phi = every(h, xs)
    base = auto.auto(subst(phi, {xs: nil(INT)}), defs=[every])
    t = var("t", list_of(INT))
    weak = forall([h, t], implies(every(h, t), every(h, cons(h, t))))
    step = auto.auto(weak, defs=[every])
    with refused("the induction needs"):
        induct_list(xs, phi, base, step)


def test_generalizing_a_variable_of_a_hypothesis():
    with refused("cannot be generalized"):
        kernel.generalize([x], kernel.assume(eq(x, integer(0))))


def test_abstracting_a_variable_of_a_hypothesis():
    with refused("cannot be abstracted"):
        kernel.abstract([x], kernel.assume(eq(x, integer(0))))


def test_a_loose_variable_is_no_statement():
    loose = make("bound", (), (0, 0), BOOL)
    with refused("closed statement"):
        kernel.assume(loose)


def test_a_binder_cannot_lie_about_its_sorts():
    loose = make("bound", (), (0, 0), REAL)
    with refused("binds"):
        make("lam", (loose,), (INT,))


def test_binding_a_term_or_a_variable_twice():
    with refused("distinct variables"):
        bind("forall", [x, x], eq(x, x))
    with refused("distinct variables"):
        bind("forall", [x + 1], eq(x, x))


@pytest.mark.parametrize(
    "build",
    [
        lambda: eq(x, a),
        lambda: x + a,
        lambda: x / y,
        lambda: cons(a, xs),
        lambda: f(a),
        lambda: make("fst", (x,)),
        lambda: make("ite", (x, x, y)),
        lambda: make("and", ()),
        lambda: make("=>", (x, y)),
        lambda: integer(Fraction(1, 2)),
        lambda: make("lit", (), 1, INT),
        lambda: make("lit", (), 0.5, REAL),
        lambda: to_real(a),
        lambda: make("nonsense", (x,)),
        lambda: make("+", (x, y), "data"),
        lambda: Sort("List"),
        lambda: Sort("Int", (), "Bool"),
        lambda: subst(x, {x: a}),
        lambda: subst(x, {x + 1: y}),
        lambda: real(0.1),
    ],
)
def test_what_does_not_type_is_not_built(build):
    with refused():
        build()


def test_sorts_are_not_confused_by_their_names():
    s, t = named("A"), named("A × A")
    assert pair_of(s, s) != t
    u, v = var("u", pair_of(s, s)), var("v", t)
    with refused():
        eq(u, v)


def test_an_instance_of_another_sort():
    with refused("other sorts"):
        kernel.instantiate(kernel.assume(forall([x], eq(x, x))), a)


def test_no_branch_is_taken_on_a_symbol():
    with refused("no truth value"):
        bool(x < y)


def test_a_constant_is_defined_once():
    constants.define("attack.one", [], integer(1))
    with refused("another definition"):
        constants.define("attack.one", [], integer(2))


def test_definitions_are_not_circular():
    late = Symbol("attack.late", (), INT)
    with refused("no meaning yet"):
        constants.define("attack.early", [], late() + 1)
    with refused("no meaning yet"):
        constants.define("attack.self", [x], Symbol("attack.self", (INT,), INT)(x) + 1)


def test_the_body_speaks_of_its_parameters_only():
    with refused("more than its parameters"):
        constants.define("attack.escape", [x], y)


def test_recursion_is_on_the_smaller_value():
    g = Symbol("attack.loop", (list_of(INT),), INT)
    h, t = constants.recursion_variables(xs)
    with refused("not smaller"):
        constants.define_recursive(g, [xs], 0, integer(0), g(cons(h, t)) + 1)
    k = Symbol("attack.down", (INT,), INT)
    (m,) = constants.recursion_variables(n)
    with refused("not smaller"):
        constants.define_recursive(k, [n], 0, integer(0), k(m - 1) + 1)
    with refused("no meaning yet"):
        constants.define_recursive(k, [n], 0, k(integer(1)) + 1, integer(0))


def test_recursion_does_not_hide_a_call_inside_an_argument():
    g = Symbol("attack.nest", (list_of(INT), INT), INT)
    h, t = constants.recursion_variables(xs)
    step = g(t, g(cons(h, t), x))
    with refused("not smaller"):
        constants.define_recursive(g, [xs, x], 0, integer(0), step)


def test_recursion_parameters_do_not_coincide():
    g = Symbol("attack.clash", (INT, list_of(INT)), INT)
    h, _ = constants.recursion_variables(xs)
    with refused("distinct variables"):
        constants.define_recursive(g, [h, xs], 1, integer(0), h)


def test_a_declared_constant_is_not_defined():
    with refused("cannot be defined"):
        constants.define("exp", [a], real(0))
    with refused("already has a meaning"):
        constants.declare("exp", INT, INT)


def test_another_symbol_of_the_same_name_has_no_laws():
    constants.define("attack.two", [], integer(2))
    with refused("not defined"):
        constants.laws(Symbol("attack.two", (), REAL))


def test_an_axiom_is_closed_and_leaves_a_trace():
    with refused("no free variables"):
        constants.axiom("false", eq(x, integer(0)))
    th = constants.axiom("attack.false", FALSE)
    assert kernel.discharge(TRUE, th).axioms == {("attack.false", FALSE)}
