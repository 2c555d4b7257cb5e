"""Layout of a chat: a prefix that survives, and the channels of a past message."""

from collections.abc import Mapping
from functools import cache

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    at_zero,
    by_induction,
    close,
    have,
    lemma,
    suppose,
    unfold,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.match import opened, prenex
from k3.logic.recursion import recursive
from k3.logic.sorts import BOOL, INT, Sort, list_of, named
from k3.logic.syntax import (
    FALSE,
    conj,
    cons,
    eq,
    forall,
    implies,
    integer,
    ite,
    nil,
    var,
)
from k3.logic.terms import Symbol, Term
from k3.proof.lists import append, length
from k3.proof.theorem import Theorem, Theorems

ITEM, CHANNEL = named("Item"), named("Channel")
declared, history, once, other = (
    var(name, list_of(ITEM)) for name in ("declared", "history", "once", "other")
)
JOIN = append(ITEM)
LAYOUT = define(
    "layout", [declared, history, once], JOIN(JOIN(declared, history), once)
)


@cache
def taken(element: Sort) -> Symbol:
    """The first n elements."""
    n, xs = var("n", INT), var("xs", list_of(element))
    return recursive(
        f"take[{element}]",
        [n, xs],
        list_of(element),
        lambda n: nil(element),
        lambda h, t, rec, n: ite(n <= 0, nil(element), cons(h, rec(n - 1))),
    )


TAKE = taken(ITEM)


def prefix_is_kept() -> Term:
    """Changing what holds for one answer only keeps the layout's prefix, which is the
    declared options and then the history.
    """
    prefix = JOIN(declared, history)
    size = length(ITEM)(prefix)
    first = TAKE(size, LAYOUT(declared, history, once))
    second = TAKE(size, LAYOUT(declared, history, other))
    goal = conj(eq(first, prefix), eq(second, first))
    return forall([declared, history, once, other], goal)


@lemma
def _take_joined() -> Thm:
    """The first |xs| elements of xs ++ ys are xs."""
    xs, ys = var("xs", list_of(ITEM)), var("ys", list_of(ITEM))
    size = length(ITEM)(xs)
    nonneg = by_induction(xs, size >= 0, defs=[length(ITEM)])
    none = _take_none()
    goal = forall([ys], eq(TAKE(size, JOIN(xs, ys)), xs))
    defs = [TAKE, length(ITEM), JOIN]
    return prenex(by_induction(xs, goal, by=[nonneg, none], defs=defs))


@lemma
def _take_none() -> Thm:
    """The first 0 elements are none."""
    xs = var("xs", list_of(ITEM))
    return by_induction(xs, eq(TAKE(integer(0), xs), nil(ITEM)), defs=[TAKE])


@lemma
def _prove_prefix() -> Thm:
    prefix = JOIN(declared, history)
    laws = [
        fact
        for ys in (once, other)
        for fact in (_take_joined()(prefix, ys), unfold(LAYOUT, declared, history, ys))
    ]
    vs, goal = opened(prefix_is_kept())
    at = dict(zip((declared, history, once, other), vs, strict=True))
    moved = kernel.generalize(tuple(at), kernel.conj_intro(*laws))(*vs)
    return kernel.generalize(vs, have(goal, moved))


def _prefix_mutants() -> Mapping[str, Term]:
    """Wrong variants of prefix_is_kept."""
    whole = LAYOUT(declared, history, once)
    size = length(ITEM)(JOIN(declared, history))
    late = JOIN(once, JOIN(declared, history))
    return {
        "one token more": forall(
            [declared, history, once, other],
            eq(TAKE(size + 1, whole), TAKE(size + 1, LAYOUT(declared, history, other))),
        ),
        "one-shot options first": forall(
            [declared, history, once], eq(TAKE(size, late), JOIN(declared, history))
        ),
    }


think, response, tools = (var(v, CHANNEL) for v in ("think", "response", "tools"))
thinking, called = var("thinking", BOOL), var("called", BOOL)
channel, rest = var("channel", CHANNEL), var("rest", list_of(CHANNEL))
HAS = recursive(
    "has",
    [channel, rest],
    BOOL,
    lambda channel: FALSE,
    lambda h, t, rec, channel: eq(h, channel) | rec(channel),
)
MODE = [think, response, tools, thinking, called]
NONE = nil(CHANNEL)
# think in thinking mode, then response, and tools after calls
CHANNELS = define(
    "channels",
    MODE,
    append(CHANNEL)(
        ite(thinking, cons(think, NONE), NONE),
        cons(response, ite(called, cons(tools, NONE), NONE)),
    ),
)


def thinking_is_kept() -> Term:
    """A past message has a thinking channel exactly in thinking mode, tools exactly
    after calls, and a response always; the three channels being different.
    """
    found = CHANNELS(*MODE)
    different = conj(~eq(think, response), ~eq(think, tools), ~eq(response, tools))
    goal = conj(
        eq(HAS(think, found), thinking),
        eq(HAS(tools, found), called),
        HAS(response, found),
    )
    return forall(MODE, implies(different, goal))


@lemma
def _prove_channels() -> Thm:
    vs, body = opened(thinking_is_kept())
    hyps = suppose(body.args[0])
    think, response, tools, *_ = vs
    tail_full = cons(tools, NONE)
    join = append(CHANNEL)
    facts = [unfold(CHANNELS, *vs), *hyps]
    for after in (tail_full, NONE):
        spoken = cons(response, after)
        facts.append(at_next(join, think, NONE, spoken))
        facts.append(at_zero(join, spoken))
        for c in (think, response, tools):
            facts.append(at_next(HAS, think, spoken, c))
            facts.append(at_next(HAS, response, after, c))
            facts.append(at_next(HAS, tools, NONE, c))
            facts.append(at_zero(HAS, c))
    goals = [kernel.ground(g, facts) for g in body.args[1].args]
    return close(vs, hyps, kernel.conj_intro(*goals))


def _channel_mutants() -> Mapping[str, Term]:
    """Wrong variants of thinking_is_kept."""
    found = CHANNELS(*MODE)
    different = conj(~eq(think, response), ~eq(think, tools), ~eq(response, tools))
    return {
        "thinking always kept": forall(MODE, implies(different, HAS(think, found))),
        "thinking never kept": forall(MODE, implies(different, ~HAS(think, found))),
        "channels that may coincide": forall(MODE, eq(HAS(think, found), thinking)),
    }


ANY = "all item types, all lengths"
THEOREMS: Theorems = {
    "prefix_is_kept": Theorem(
        statement=prefix_is_kept,
        proof=_prove_prefix,
        scope=ANY,
        mutants=_prefix_mutants,
    ),
    "thinking_is_kept": Theorem(
        statement=thinking_is_kept,
        proof=_prove_channels,
        scope="both modes, with and without calls",
        mutants=_channel_mutants,
    ),
}
