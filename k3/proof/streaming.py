"""A stack of layers: token by token through all layers, or layer by layer."""

from collections.abc import Callable, Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    at_zero,
    auto,
    by_induction,
    close,
    have,
    lemma,
    restate,
    suppose,
    use,
)
from k3.logic.induction import induct_list
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import fun, list_of, named, pair_of
from k3.logic.syntax import (
    cons,
    eq,
    forall,
    fresh,
    fst,
    implies,
    lam,
    nil,
    pair,
    snd,
    var,
)
from k3.logic.terms import Term, make
from k3.proof.lists import append, length
from k3.proof.scan import run
from k3.proof.theorem import Theorem, Theorems

LAYER, STATE, VALUE = map(named, ("Layer", "State", "Value"))
apply = var("apply", fun(LAYER, STATE, VALUE, pair_of(STATE, VALUE)))
layers = var("layers", list_of(LAYER))
states = var("states", list_of(STATE))
x, xs, ys = var("x", VALUE), var("xs", list_of(VALUE)), var("ys", list_of(VALUE))
RUN_LAYER = run(STATE, VALUE, VALUE)
RUN_STACK = run(list_of(STATE), VALUE, VALUE)


def head(xs: Term) -> Term:
    """First of a list."""
    return make("hd", (xs,))


def tail(xs: Term) -> Term:
    """All but the first."""
    return make("tl", (xs,))


def _one_token(layer: Term, t: Term, rec: Callable[..., Term], *given: Term) -> Term:
    apply, states, x = given
    now = apply(layer, head(states), x)
    later = rec(apply, tail(states), snd(now))
    return pair(cons(fst(now), fst(later)), snd(later))


# one token through all layers, each layer with its own state
STACK = recursive(
    "stack",
    [apply, layers, states, x],
    pair_of(list_of(STATE), VALUE),
    lambda apply, states, x: pair(nil(STATE), x),
    _one_token,
    on=1,
)


def layer_step(layer: Term) -> Term:
    """One layer as a step function."""
    s, v = fresh("s", STATE), fresh("v", VALUE)
    return lam([s, v], apply(layer, s, v))


def stack_step(layers: Term) -> Term:
    """All layers as one step function."""
    s, v = fresh("s", list_of(STATE)), fresh("v", VALUE)
    return lam([s, v], STACK(apply, layers, s, v))


def _all_tokens(layer: Term, t: Term, rec: Callable[..., Term], *given: Term) -> Term:
    apply, states, xs = given
    now = RUN_LAYER(layer_step(layer), head(states), xs)
    later = rec(apply, tail(states), snd(now))
    return pair(cons(fst(now), fst(later)), snd(later))


# all tokens through the first layer, then all through the second, ...
BY_LAYERS = recursive(
    "by_layers",
    [apply, layers, states, xs],
    pair_of(list_of(STATE), list_of(VALUE)),
    lambda apply, states, xs: pair(nil(STATE), xs),
    _all_tokens,
    on=1,
)
COUNT_LAYERS, COUNT_STATES = length(LAYER), length(STATE)


def _same(layers: Term, states: Term, xs: Term) -> Term:
    tokens = RUN_STACK(stack_step(layers), states, xs)
    return eq(tokens, BY_LAYERS(apply, layers, states, xs))


def _fits(layers: Term, states: Term) -> Term:
    return eq(COUNT_STATES(states), COUNT_LAYERS(layers))


def streaming_equals_whole() -> Term:
    """Token by token through all layers gives the states and the outputs of
    processing the whole sequence layer by layer, if every layer has one state.
    """
    every = [apply, layers, states, xs]
    return forall(every, implies(_fits(layers, states), _same(layers, states, xs)))


@lemma
def _one_more_layer() -> Thm:
    """A stack with one more layer runs it first, over all tokens."""
    layer, state = var("layer", LAYER), var("state", STATE)
    one = RUN_LAYER(layer_step(layer), state, xs)
    rest = RUN_STACK(stack_step(layers), states, snd(one))
    whole = RUN_STACK(stack_step(cons(layer, layers)), cons(state, states), xs)
    goal = eq(whole, pair(cons(fst(one), fst(rest)), snd(rest)))
    every = forall([apply, layer, layers, state, states], goal)
    return by_induction(xs, every, defs=[RUN_STACK, RUN_LAYER, STACK])


@lemma
def _no_layer() -> Thm:
    """A stack without layers changes nothing."""
    whole = RUN_STACK(stack_step(nil(LAYER)), nil(STATE), xs)
    goal = forall([apply], eq(whole, pair(nil(STATE), xs)))
    return by_induction(xs, goal, defs=[RUN_STACK, STACK])


@lemma
def _empty_states() -> Thm:
    """Only the empty list has length 0."""
    nonneg = by_induction(states, COUNT_STATES(states) >= 0, defs=[COUNT_STATES])
    empty = implies(eq(COUNT_STATES(states), 0), eq(states, nil(STATE)))
    return by_induction(states, empty, by=[nonneg], defs=[COUNT_STATES])


@lemma
def _split_states() -> Thm:
    """A list that is not empty is its head and its tail."""
    nonneg = by_induction(states, COUNT_STATES(states) >= 0, defs=[COUNT_STATES])
    whole = eq(states, cons(head(states), tail(states)))
    return by_induction(
        states, implies(COUNT_STATES(states) > 0, whole), [nonneg], [COUNT_STATES]
    )


@lemma
def _prove_streaming() -> Thm:
    (fits,) = suppose(_fits(nil(LAYER), states))
    empty = use(_empty_states()(states), fits, at_zero(COUNT_LAYERS))
    laws = [_no_layer()(xs)(apply), at_zero(BY_LAYERS, apply, states, xs)]
    base = have(_same(nil(LAYER), states, xs), empty, *laws)
    base = close([states, xs], [fits], base)

    one, more = fresh("layer", LAYER), fresh("layers", list_of(LAYER))
    every = forall(
        [states, xs], implies(_fits(layers, states), _same(layers, states, xs))
    )
    smaller = suppose(_all_states(more))
    (fits,) = suppose(_fits(cons(one, more), states))
    count = by_induction(layers, COUNT_LAYERS(layers) >= 0, defs=[COUNT_LAYERS])
    grown = at_next(COUNT_LAYERS, one, more)
    some = have(COUNT_STATES(states) > 0, fits, grown, count(more))
    split = use(_split_states()(states), some)
    less = at_next(COUNT_STATES, head(states), tail(states))
    tail_fits = have(_fits(more, tail(states)), fits, split, grown, less)
    middle = snd(RUN_LAYER(layer_step(one), head(states), xs))
    later = kernel.mp(smaller[0](tail(states), middle), tail_fits)
    first = _one_more_layer()(xs)(apply, one, more, head(states), tail(states))
    law = at_next(BY_LAYERS, one, more, apply, states, xs)
    step = have(_same(cons(one, more), states, xs), first, law, later, split)
    step = close([states, xs], [fits], step)
    th = induct_list(layers, every, base, close([one, more], smaller, step))
    return restate(streaming_equals_whole(), kernel.generalize([apply], th))


def _all_states(layers: Term) -> Term:
    return forall(
        [states, xs], implies(_fits(layers, states), _same(layers, states, xs))
    )


def chunks_equal_whole() -> Term:
    """Streaming xs ++ ys through the stack is streaming xs, then ys from there."""
    step = stack_step(layers)
    first = RUN_STACK(step, states, xs)
    second = RUN_STACK(step, fst(first), ys)
    joined = append(VALUE)(snd(first), snd(second))
    whole = RUN_STACK(step, states, append(VALUE)(xs, ys))
    return forall([apply, layers, states, xs, ys], eq(whole, pair(fst(second), joined)))


@lemma
def _prove_chunks() -> Thm:
    s = var("s", list_of(STATE))
    step = var("step", fun(list_of(STATE), VALUE, pair_of(list_of(STATE), VALUE)))
    first = RUN_STACK(step, s, xs)
    second = RUN_STACK(step, fst(first), ys)
    joined = append(VALUE)(snd(first), snd(second))
    goal = eq(RUN_STACK(step, s, append(VALUE)(xs, ys)), pair(fst(second), joined))
    th = by_induction(xs, forall([step, s, ys], goal), defs=[RUN_STACK, append(VALUE)])
    return auto(chunks_equal_whole(), by=[th])


def _mutants() -> Mapping[str, Term]:
    every = [apply, layers, states, xs]
    tokens = RUN_STACK(stack_step(layers), states, xs)
    return {
        "no layer changes its state": forall(
            every, implies(_fits(layers, states), eq(fst(tokens), states))
        ),
        "the outputs are the inputs": forall(
            every, implies(_fits(layers, states), eq(snd(tokens), xs))
        ),
    }


ALL = "all layer, state and value types, any number of layers, all lengths"


def _chunk_mutants() -> Mapping[str, Term]:
    """Wrong variants of chunks_equal_whole."""
    step, every = stack_step(layers), [apply, layers, states, xs, ys]
    first = RUN_STACK(step, states, xs)
    second, fresh_ = (RUN_STACK(step, s, ys) for s in (fst(first), states))
    whole = RUN_STACK(step, states, append(VALUE)(xs, ys))
    swapped = append(VALUE)(snd(second), snd(first))
    again = append(VALUE)(snd(first), snd(fresh_))
    return {
        "the second chunk starts anew": forall(
            every, eq(whole, pair(fst(fresh_), again))
        ),
        "the second chunk comes first": forall(
            every, eq(whole, pair(fst(second), swapped))
        ),
    }


THEOREMS: Theorems = {
    "streaming_equals_whole": Theorem(
        statement=streaming_equals_whole,
        proof=_prove_streaming,
        scope=ALL,
        mutants=_mutants,
    ),
    "chunks_equal_whole": Theorem(
        statement=chunks_equal_whole,
        proof=_prove_chunks,
        scope=ALL,
        mutants=_chunk_mutants,
    ),
}
