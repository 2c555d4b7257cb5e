"""Laws of finite sums: Σ over i < n for numbers n, and over the elements of lists."""

from functools import cache

from k3.logic import kernel
from k3.logic.auto import (
    auto,
    by_induction,
    close,
    have,
    lemma,
    nat_induction,
    suppose,
    use,
)
from k3.logic.induction import induct_nat
from k3.logic.kernel import Thm
from k3.logic.match import prenex
from k3.logic.recursion import recursive
from k3.logic.sorts import BOOL, INT, REAL, Sort, fun, list_of
from k3.logic.syntax import (
    TRUE,
    absolute,
    conj,
    eq,
    forall,
    fresh,
    implies,
    integer,
    ite,
    lam,
    real,
    var,
)
from k3.logic.terms import Symbol, Term, open_body
from k3.proof.lists import total

f, g = var("f", fun(INT, REAL)), var("g", fun(INT, REAL))
n, m, i, j, k = (var(name, INT) for name in "nmijk")
c = var("c", REAL)
h = var("h", fun(INT, INT, REAL))

SUM = recursive("Σ", [f, n], REAL, lambda f: real(0), lambda n, rec, f: rec(f) + f(n))


def sigma(n: Term, body: Term, i: Term) -> Term:
    """Σ of the body over i < n."""
    return SUM(lam([i], body), n)


@lemma
def sum_add() -> Thm:
    """Σ (f + g) = Σ f + Σ g."""
    phi = forall([f, g], eq(sigma(n, f(i) + g(i), i), SUM(f, n) + SUM(g, n)))
    return prenex(by_induction(n, phi, defs=[SUM]))


@lemma
def sum_scale() -> Thm:
    """Σ c·f = c·Σ f."""
    phi = forall([c, f], eq(sigma(n, c * f(i), i), c * SUM(f, n)))
    return prenex(by_induction(n, phi, defs=[SUM]))


@lemma
def sum_zero() -> Thm:
    """Σ 0 = 0."""
    return by_induction(n, eq(sigma(n, real(0), i), 0), defs=[SUM])


@lemma
def sum_congruence() -> Thm:
    """Functions that agree below n have the same Σ."""
    up = fresh("n", INT)

    def agree(n: Term) -> Term:
        return forall([i], implies(conj(i >= 0, i < n), eq(f(i), g(i))))

    def phi(n: Term) -> Term:
        return implies(agree(n), eq(SUM(f, n), SUM(g, n)))

    base = auto(phi(integer(0)), defs=[SUM])
    (at,) = suppose(conj(up >= 0, phi(up)))
    (all_up,) = suppose(agree(up + 1))
    nonneg, smaller = (kernel.conj_elim(at, part) for part in (0, 1))
    below = suppose(conj(i >= 0, i < up))
    lower = close([i], below, use(all_up(i), *below))
    same = kernel.mp(smaller, lower)
    last = use(all_up(up), nonneg)
    goal = eq(SUM(f, up + 1), SUM(g, up + 1))
    step = auto(goal, by=[same, last, nonneg], defs=[SUM])
    step = close([up], [at, all_up], step)
    return prenex(kernel.generalize([f, g], induct_nat(n, phi(n), base, step)))


@lemma
def sum_swap() -> Thm:
    """Σ over i of Σ over j = Σ over j of Σ over i."""
    (dim,) = suppose(m >= 0)

    def at(n: Term) -> Term:
        rows = sigma(n, sigma(m, h(i, j), j), i)
        columns = sigma(m, sigma(n, h(i, j), i), j)
        return forall([h], eq(rows, columns))

    def step(n: Term, natural: Thm, smaller: Thm) -> Thm:
        upper, last = lam([j], sigma(n, h(i, j), i)), lam([j], h(n, j))
        split = use(sum_add()(m, upper, last), dim)
        by = [smaller, split, natural]
        return kernel.generalize([h], auto(opened_at(at(n + 1)), by=by, defs=[SUM]))

    def opened_at(phi: Term) -> Term:
        return open_body(phi.args[0], (h,))

    nothing = use(sum_zero()(m), dim)
    base = auto(at(integer(0)), by=[nothing, dim], defs=[SUM])
    return prenex(close([m], [dim], nat_induction(n, at(n), base, step)))


@lemma
def sum_pick() -> Thm:
    """Σ of [i = k]·f(i) over i < n is f(k), for 0 ≤ k < n."""
    picked = sigma(n, ite(eq(i, k), f(i), real(0)), i)
    value = ite(k < n, f(k), real(0))
    phi = forall([k, f], implies(k >= 0, eq(picked, value)))
    whole = prenex(by_induction(n, phi, defs=[SUM]))
    hyps = suppose(n >= 0, k >= 0, k < n)
    at = use(whole(n, k, f), *hyps)
    return close([n, k, f], hyps, have(eq(picked, f(k)), at, *hyps))


@cache
def every(element: Sort) -> Symbol:
    """Does p hold of every element?"""
    p, xs = var("p", fun(element, BOOL)), var("xs", list_of(element))
    return recursive(
        f"every[{element}]",
        [p, xs],
        BOOL,
        lambda p: TRUE,
        lambda h, t, rec, p: conj(p(h), rec(p)),
    )


def over(element: Sort) -> tuple[Term, Term, Term, Term]:
    """Variables for a list, one element, and two functions of elements."""
    image = fun(element, REAL)
    return (
        var("xs", list_of(element)),
        var("x", element),
        var("f", image),
        var("g", image),
    )


def _law(element: Sort, phi: Term, *by: Thm) -> Thm:
    xs, _, f, g = over(element)
    variables = [v for v in (c, f, g) if v in phi.free]
    defs = [total(element), every(element)]
    return prenex(by_induction(xs, forall(variables, phi), by=by, defs=defs))


def total_add(element: Sort) -> Thm:
    """The total of f + g is the sum of their totals."""
    xs, x, f, g = over(element)
    add = total(element)
    both = add(lam([x], f(x) + g(x)), xs)
    return _law(element, eq(both, add(f, xs) + add(g, xs)))


def total_scale(element: Sort) -> Thm:
    """The total of c·f is c times the total of f."""
    xs, x, f, _ = over(element)
    add = total(element)
    return _law(element, eq(add(lam([x], c * f(x)), xs), c * add(f, xs)))


def total_monotone(element: Sort) -> Thm:
    """If f ≤ g on every element, the totals are in the same order."""
    xs, x, f, g = over(element)
    add, below = total(element), lam([x], f(x) <= g(x))
    return _law(element, implies(every(element)(below, xs), add(f, xs) <= add(g, xs)))


def total_absolute(element: Sort) -> Thm:
    """The total is at most the total of absolute values, in absolute value."""
    xs, x, f, _ = over(element)
    add = total(element)
    bound = add(lam([x], absolute(f(x))), xs)
    return _law(element, conj(add(f, xs) <= bound, -bound <= add(f, xs)))


def every_of_all(element: Sort) -> Thm:
    """What holds of everything holds of every element."""
    p = var("p", fun(element, BOOL))
    xs, x, _, _ = over(element)
    everything = suppose(forall([x], p(x)))
    goal = every(element)(p, xs)
    th = by_induction(xs, goal, by=everything, defs=[every(element)])
    return prenex(close([p], everything, th))
