"""Some theorems that use every rule of the kernel, and their log."""

import json

import pytest

from k3.logic import analysis, auto, constants, kernel, log, rewrite
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL, list_of
from k3.logic.syntax import conj, cons, eq, forall, integer, lam, real, var

x, y = var("x", REAL), var("y", REAL)
xs, ys = var("xs", list_of(REAL)), var("ys", list_of(REAL))
n = var("n", INT)


def swapped():
    """x < y ∧ y < x, turned around in two ways."""
    (p,) = auto.suppose(conj(x < y, y < x))
    there = kernel.discharge(
        p.concl, kernel.conj_intro(kernel.conj_elim(p, 1), kernel.conj_elim(p, 0))
    )
    both = kernel.generalize([x, y], there)
    same = kernel.iff_intro(both(x, y), both(y, x))
    return same, kernel.discharge(p.concl, kernel.eq_mp(same, p))


def theorems():
    """One log with every rule of the kernel in it."""
    total = recursive(
        "log.total", [xs], REAL, lambda: real(0), lambda h, t, rec: rec() + h
    )
    join = recursive(
        "log.join",
        [xs, ys],
        list_of(REAL),
        lambda ys: ys,
        lambda h, t, rec, ys: cons(h, rec(ys)),
        on=0,
    )
    twice = constants.define("log.twice", [x], x + x)
    even = recursive("log.even", [n], INT, lambda: integer(0), lambda n, rec: rec() + 2)
    sums = forall([ys], eq(total(join(xs, ys)), total(xs) + total(ys)))
    square = kernel.generalize([x], auto.have(x * x >= 0))
    bound = auto.close(
        [x, y], h := auto.suppose(x >= 1, y >= 1), auto.exact(x * y >= 1, *h, degree=2)
    )
    cases = kernel.by_cases(
        x >= 0,
        auto.exact(twice(x) * twice(x) >= 0, auto.unfold(twice, x), square(twice(x))),
        auto.have(twice(x) * twice(x) >= 0, square(twice(x))),
    )
    same, swap = swapped()
    return {
        "join": auto.by_induction(xs, sums, defs=[total, join]),
        "even": auto.by_induction(n, eq(even(n), n * 2), defs=[even]),
        "square": square,
        "bound": bound,
        "cases": kernel.generalize([x], cases),
        "same": kernel.generalize([x, y], same),
        "swap": swap,
        "under": rewrite.equal(
            eq(lam([x], twice(x) * y), lam([x], y * twice(x) + 0)), []
        ),
        "exp": auto.have(analysis.EXP(real(1)) >= 2, analysis.EXP_TANGENT(1)),
    }


@pytest.fixture(scope="module")
def proved():
    return theorems()


@pytest.fixture(scope="module")
def lines(proved):
    return [json.loads(line) for line in log.write(proved)]
