"""A causal scan: a step function run over a list, state in, state and outputs out."""

from collections.abc import Callable, Mapping
from functools import cache

from k3.logic import kernel
from k3.logic.auto import auto, by_induction, close, lemma, parts, restate, suppose
from k3.logic.induction import induct_list
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import BOOL, Sort, fun, list_of, named, pair_of
from k3.logic.syntax import (
    conj,
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
from k3.logic.terms import Symbol, Term
from k3.proof.lists import append, length, mapped
from k3.proof.theorem import Theorem, Theorems

STATE, TOKEN, OUTPUT, IMAGE = map(named, ("State", "Token", "Output", "Image"))


@cache
def run(state: Sort, token: Sort, output: Sort) -> Symbol:
    """The last state and all outputs of a step function run over a list."""
    step = var("step", fun(state, token, pair_of(state, output)))
    s, xs = var("s", state), var("xs", list_of(token))

    def after(h: Term, t: Term, rec: Callable[..., Term], step: Term, s: Term) -> Term:
        now = step(s, h)
        later = rec(step, fst(now))
        return pair(fst(later), cons(snd(now), snd(later)))

    return recursive(
        f"run[{state},{token},{output}]",
        [step, s, xs],
        pair_of(state, list_of(output)),
        lambda step, s: pair(s, nil(output)),
        after,
    )


RUN = run(STATE, TOKEN, OUTPUT)
step = var("step", fun(STATE, TOKEN, pair_of(STATE, OUTPUT)))
s = var("s", STATE)
xs, ys = var("xs", list_of(TOKEN)), var("ys", list_of(TOKEN))
ALL = "all state, token and output types, all step functions, all lengths"


def outputs_length() -> Term:
    """A scan over n tokens has n outputs."""
    left = length(OUTPUT)(snd(RUN(step, s, xs)))
    return forall([step, s, xs], eq(left, length(TOKEN)(xs)))


@lemma
def _prove_outputs_length() -> Thm:
    phi = forall([step, s], _outputs_length_at(xs))
    by = by_induction(xs, phi, defs=[length(TOKEN), length(OUTPUT), RUN])
    return restate(outputs_length(), by)


def _outputs_length_at(xs: Term) -> Term:
    return eq(length(OUTPUT)(snd(RUN(step, s, xs))), length(TOKEN)(xs))


def _append_at(carried: Term) -> Term:
    """Running over xs ++ ys against running over ys from the carried state."""
    first, second = RUN(step, s, xs), RUN(step, carried, ys)
    joined = append(OUTPUT)(snd(first), snd(second))
    return eq(RUN(step, s, append(TOKEN)(xs, ys)), pair(fst(second), joined))


def append_carries_state() -> Term:
    """A scan over xs ++ ys is the scan over xs, then over ys from the state it left."""
    return forall([step, s, xs, ys], _append_at(fst(RUN(step, s, xs))))


@lemma
def _prove_append() -> Thm:
    phi = forall([step, s, ys], _append_at(fst(RUN(step, s, xs))))
    by = by_induction(xs, phi, defs=[RUN, append(TOKEN), append(OUTPUT)])
    return restate(append_carries_state(), by)


def _append_mutants() -> Mapping[str, Term]:
    """Wrong variants of append_carries_state."""
    first, second = RUN(step, s, xs), RUN(step, fst(RUN(step, s, xs)), ys)
    swapped = append(OUTPUT)(snd(second), snd(first))
    whole = RUN(step, s, append(TOKEN)(xs, ys))
    return {
        "the second part starts from the first state": forall(
            [step, s, xs, ys], _append_at(s)
        ),
        "the outputs of the second part come first": forall(
            [step, s, xs, ys], eq(whole, pair(fst(second), swapped))
        ),
    }


RUN_IMAGE = run(STATE, TOKEN, IMAGE)
f = var("f", fun(OUTPUT, IMAGE))


def _with_map(xs: Term) -> Term:
    a, b = var("a", STATE), var("b", TOKEN)
    mapped_step = lam([a, b], pair(fst(step(a, b)), f(snd(step(a, b)))))
    left, right = RUN_IMAGE(mapped_step, s, xs), RUN(step, s, xs)
    images = mapped(OUTPUT, IMAGE)(f, snd(right))
    return conj(eq(fst(left), fst(right)), eq(snd(left), images))


def map_commutes() -> Term:
    """Mapping every output inside the step is mapping the outputs of the scan."""
    return forall([step, f, s, xs], _with_map(xs))


@lemma
def _prove_map_commutes() -> Thm:
    phi = forall([step, f, s], _with_map(xs))
    by = by_induction(xs, phi, defs=[RUN, RUN_IMAGE, mapped(OUTPUT, IMAGE)])
    return restate(map_commutes(), by)


PACKED = named("Packed")
packed_step = var("packed_step", fun(PACKED, TOKEN, pair_of(PACKED, OUTPUT)))
represents = var("represents", fun(PACKED, STATE, BOOL))
p, x = var("p", PACKED), var("x", TOKEN)
RUN_PACKED = run(PACKED, TOKEN, OUTPUT)


def _agree(left: Term, right: Term) -> Term:
    return conj(represents(fst(left), fst(right)), eq(snd(left), snd(right)))


def _steps_agree() -> Term:
    same = _agree(packed_step(p, x), step(s, x))
    return forall([p, s, x], implies(represents(p, s), same))


def simulation() -> Term:
    """If packed steps keep the representation and give equal outputs, so do runs."""
    runs = _agree(RUN_PACKED(packed_step, p, xs), RUN(step, s, xs))
    every = forall([p, s, xs], implies(represents(p, s), runs))
    return forall([represents, packed_step, step], implies(_steps_agree(), every))


@lemma
def _prove_simulation() -> Thm:
    (every,) = hyps = suppose(_steps_agree())
    defs = [RUN, RUN_PACKED]
    h, t = fresh("h", TOKEN), fresh("t", list_of(TOKEN))
    (given,) = suppose(represents(p, s))
    (smaller,) = suppose(_runs_agree(t))
    now = kernel.mp(every(p, s, h), given)
    later = smaller(fst(packed_step(p, h)), fst(step(s, h)))
    later = kernel.mp(later, kernel.conj_elim(now, 0))
    at = _agree(RUN_PACKED(packed_step, p, cons(h, t)), RUN(step, s, cons(h, t)))
    grown = auto(at, by=[*parts(now), *parts(later)], defs=defs)
    grown = close([p, s], [given], grown)
    up = close([h, t], [smaller], grown)
    base = auto(_runs_agree(nil(TOKEN)), defs=defs)
    by = induct_list(xs, _runs_agree(xs), base, up)
    return restate(simulation(), close([represents, packed_step, step], hyps, by))


def _runs_agree(xs: Term) -> Term:
    runs = _agree(RUN_PACKED(packed_step, p, xs), RUN(step, s, xs))
    return forall([p, s], implies(represents(p, s), runs))


def _length_mutants() -> Mapping[str, Term]:
    """Wrong variants of outputs_length."""
    outputs = length(OUTPUT)(snd(RUN(step, s, xs)))
    more = eq(outputs, length(TOKEN)(xs) + 1)
    return {"one output before the first token": forall([step, s, xs], more)}


def _map_mutants() -> Mapping[str, Term]:
    """Wrong variants of map_commutes."""
    kept, images = _with_map(xs).args
    swapped = eq(images.args[0], mapped(OUTPUT, IMAGE)(f, snd(RUN(step, s, ys))))
    return {
        "the state stays": forall([step, f, s, xs], eq(kept.args[0], s)),
        "images of other tokens": forall([step, f, s, xs, ys], swapped),
    }


def _simulation_mutants() -> Mapping[str, Term]:
    """Wrong variants of simulation."""
    runs = _agree(RUN_PACKED(packed_step, p, xs), RUN(step, s, xs))
    free = forall([p, s, xs], runs)
    every = forall([p, s, xs], implies(represents(p, s), runs))
    return {
        "states that are not represented": forall(
            [represents, packed_step, step], implies(_steps_agree(), free)
        ),
        "steps that do not agree": forall([represents, packed_step, step], every),
    }


def _other_state() -> dict[str, object]:
    """Steps keep their state and show it; p and s are different states."""
    return {
        "represents": lambda p, s: p[-1] == s[-1],
        "packed_step": lambda p, x: (p, f"Output{p[-1]}"),
        "step": lambda s, x: (s, f"Output{s[-1]}"),
        "p": "Packed0",
        "s": "State1",
        "xs": ("Token0",),
    }


THEOREMS: Theorems = {
    "outputs_length": Theorem(
        statement=outputs_length,
        proof=_prove_outputs_length,
        scope=ALL,
        mutants=_length_mutants,
    ),
    "append_carries_state": Theorem(
        statement=append_carries_state,
        proof=_prove_append,
        scope=ALL,
        mutants=_append_mutants,
    ),
    "map_commutes": Theorem(
        statement=map_commutes,
        proof=_prove_map_commutes,
        scope=ALL,
        mutants=_map_mutants,
    ),
    "simulation": Theorem(
        statement=simulation,
        proof=_prove_simulation,
        scope="all representations between two state types, all lengths",
        mutants=_simulation_mutants,
        hints={"states that are not represented": _other_state()},
    ),
}
