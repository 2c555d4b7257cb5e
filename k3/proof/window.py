"""The short convolution's window: a rolled packed window is the token history."""

from collections.abc import Callable, Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    auto,
    close,
    lemma,
    list_induction,
    suppose,
    unfold,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL, fun, list_of, named
from k3.logic.syntax import conj, cons, eq, forall, implies, ite, lam, nil, var
from k3.logic.terms import Term
from k3.proof.lists import entry
from k3.proof.sums import SUM, sigma, sum_congruence
from k3.proof.theorem import Theorem, Theorems

TOKEN = named("Token")
ROWS = fun(INT, TOKEN)
width, i = var("width", INT), var("i", INT)
window, history = var("window", ROWS), var("history", list_of(TOKEN))
blank, x, xs = var("blank", TOKEN), var("x", TOKEN), var("xs", list_of(TOKEN))
AT = entry(TOKEN)

# row 0 is the new token, older rows move up, what leaves the window is dropped
ROLL = define(
    "roll",
    [width, blank, x, window],
    lam([i], ite(i <= 0, x, ite(i < width, window(i - 1), blank))),
)


def _rolled(h: Term, t: Term, rec: Callable[..., Term], *given: Term) -> Term:
    width, blank, window = given
    return rec(width, blank, ROLL(width, blank, h, window))


ROLLED = recursive(
    "rolled",
    [width, blank, window, xs],
    ROWS,
    lambda width, blank, window: window,
    _rolled,
)
HISTORY = recursive(  # every token in front of those before it
    "history",
    [history, xs],
    list_of(TOKEN),
    lambda history: history,
    lambda h, t, rec, history: rec(cons(h, history)),
)


def _agree(window: Term, history: Term) -> Term:
    inside = conj(i >= 0, i < width)
    return forall([i], implies(inside, eq(window(i), AT(blank, history, i))))


def _statement(rows: Term) -> Term:
    tokens = HISTORY(history, xs)
    every = [width, blank, window, history, xs]
    return forall(every, implies(_agree(window, history), _agree(rows, tokens)))


def rolled_window_is_history() -> Term:
    """Rolling a packed window over any tokens keeps it equal to the newest entries of
    the history list, up to its width; so the whole list is never needed.
    """
    return _statement(ROLLED(width, blank, window, xs))


@lemma
def _one_roll() -> Thm:
    (before,) = suppose(_agree(window, history))
    inside = suppose(conj(i >= 0, i < width))
    rolled = ROLL(width, blank, x, window)
    law = unfold(ROLL, width, blank, x, window)
    at = kernel.congr(rolled(i), law, kernel.refl(i))
    grown = at_next(AT, x, history, blank, i)
    older = before(i - 1)
    goal = eq(rolled(i), AT(blank, cons(x, history), i))
    th = kernel.ground(goal, [at, grown, older, *inside])
    pointwise = close([i], inside, th)
    return close([width, blank, window, history, x], [before], pointwise)


@lemma
def _prove_rolled() -> Thm:
    def at(xs: Term) -> Term:
        rows, tokens = ROLLED(width, blank, window, xs), HISTORY(history, xs)
        after = _agree(rows, tokens)
        return forall([window, history], implies(_agree(window, history), after))

    def step(h: Term, tail: Term, smaller: Thm) -> Thm:
        (before,) = suppose(_agree(window, history))
        rolled = ROLL(width, blank, h, window)
        now = kernel.mp(_one_roll()(width, blank, window, history, h), before)
        later = kernel.mp(smaller(rolled, cons(h, history)), now)
        whole = cons(h, tail)
        goal = _agree(ROLLED(width, blank, window, whole), HISTORY(history, whole))
        th = auto(goal, by=[later], defs=[ROLLED, HISTORY])
        return close([window, history], [before], th)

    base = auto(at(nil(TOKEN)), defs=[ROLLED, HISTORY])
    th = list_induction(xs, at(xs), base, step)
    (before,) = suppose(_agree(window, history))
    last = kernel.mp(th(xs)(window, history), before)
    return close([width, blank, window, history, xs], [before], last)


weight = var("weight", fun(INT, REAL))
value = var("value", fun(TOKEN, REAL))


def convolution_reads_window() -> Term:
    """A convolution over the window is the convolution over the history."""
    packed = sigma(width, weight(i) * value(window(i)), i)
    listed = sigma(width, weight(i) * value(AT(blank, history, i)), i)
    every = [width, blank, window, history, weight, value]
    given = conj(width >= 0, _agree(window, history))
    return forall(every, implies(given, eq(packed, listed)))


@lemma
def _prove_convolution() -> Thm:
    (given,) = suppose(conj(width >= 0, _agree(window, history)))
    natural, same = (kernel.conj_elim(given, part) for part in (0, 1))
    left = lam([i], weight(i) * value(window(i)))
    right = lam([i], weight(i) * value(AT(blank, history, i)))
    inside = suppose(conj(i >= 0, i < width))
    row = kernel.mp(same(i), inside[0])
    values = kernel.congr(value(window(i)), kernel.refl(value), row)
    product = kernel.congr(weight(i) * value(window(i)), kernel.refl(weight(i)), values)
    pointwise = close([i], inside, product)
    th = use(sum_congruence()(left, right, width), natural, pointwise)
    every = [width, blank, window, history, weight, value]
    assert th.concl is eq(SUM(left, width), SUM(right, width))
    return close(every, [given], th)


ALL = "all widths, all token types, all lengths"


def _at(history: Term) -> Term:
    return lam([i], AT(blank, history, i))


def _rolled_mutants() -> Mapping[str, Term]:
    """Wrong variants of rolled_window_is_history, on a window read off the history."""
    here = ROLLED(width, blank, _at(history), xs)(i)
    newest = HISTORY(history, xs)
    wrong = {
        "off by one: the entry before": AT(blank, newest, i + 1),
        "the new tokens are missing": AT(blank, history, i),
    }
    every, inside = [width, blank, history, xs, i], conj(i >= 0, i < width)
    out = {k: forall(every, implies(inside, eq(here, v))) for k, v in wrong.items()}
    wide = implies(conj(i >= 0, i <= width), eq(here, AT(blank, newest, i)))
    return {**out, "one entry past the width": forall(every, wide)}


def _convolution_mutants() -> Mapping[str, Term]:
    """Wrong variants of convolution_reads_window, on such a window."""
    packed = sigma(width, weight(i) * value(AT(blank, history, i)), i)
    wrong = {
        "off by one: the entries before": weight(i) * value(AT(blank, history, i + 1)),
        "the taps run the other way": weight(width - 1 - i)
        * value(AT(blank, history, i)),
    }
    every = [width, blank, history, weight, value]
    return {
        name: forall(every, implies(width >= 0, eq(packed, sigma(width, each, i))))
        for name, each in wrong.items()
    }


THEOREMS: Theorems = {
    "rolled_window_is_history": Theorem(
        statement=rolled_window_is_history,
        proof=_prove_rolled,
        scope=ALL,
        mutants=_rolled_mutants,
    ),
    "convolution_reads_window": Theorem(
        statement=convolution_reads_window,
        proof=_prove_convolution,
        scope=ALL + ", all weights",
        mutants=_convolution_mutants,
    ),
}
