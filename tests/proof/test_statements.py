"""Every statement holds on random exact instances of at least three sizes.

Nothing of the prover is used: premises and both sides are computed by the
definitions, which test_definitions compares with plain Python.
"""

import random
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from k3 import proof
from k3.logic import falsify
from k3.logic.interval import Undecided
from k3.logic.match import opened

THEOREMS = proof.theorems()
SIZES = (1, 2, 3, 4)
TRIES, MANY = 4, 12
"""Instances of a size: in the default run, and with what is slow."""
ENOUGH = 3


def encoded(rng, size):
    """A packed state stands for one state: its number. Two equal step functions."""
    table = {}

    def step(prefix):
        def apply(state, token):
            key = state[-1], token
            if key not in table:
                table[key] = rng.randrange(3), f"Output{rng.randrange(3)}"
            number, output = table[key]
            return f"{prefix}{number}", output

        return apply

    return {
        "represents": lambda p, s: p[-1] == s[-1],
        "packed_step": step("Packed"),
        "step": step("State"),
    }


def distributions(rng, size):
    """Target and draft probabilities of `size` tokens."""
    columns = []
    for _ in range(2):
        parts = [rng.randint(0, 4) for _ in range(size)]
        parts[rng.randrange(size)] += 1
        columns.append([Fraction(p, sum(parts)) for p in parts])
    same = rng.random() < 0.3
    rows = zip(columns[0], columns[0 if same else 1], strict=True)
    return {"tokens": tuple(rows)}


def ranked_bin(rng, size):
    """A value of a list, its rank, and a bin around it."""
    values = tuple(Fraction(rng.randint(-3, 3)) for _ in range(size))
    theta = rng.choice(values)
    below = sum(v < theta for v in values)
    at_most = sum(v <= theta for v in values)
    return {
        "values": values,
        "theta": theta,
        "rank": Fraction(rng.randint(below + 1, at_most)),
        "low": theta - rng.randint(0, 2),
        "high": theta + rng.randint(1, 3),
    }


def far_scores(rng, size):
    """Scores more than twice the error apart."""
    gap, t = Fraction(rng.randint(0, 4), 2), Fraction(rng.randint(-5, 5))
    s = t + gap * 2 + Fraction(1, size)
    errors = [gap * rng.choice([-1, 0, 1]) for _ in range(2)]
    return {"gap": gap, "s": s, "t": t, "s'": s + errors[0], "t'": t + errors[1]}


def rotations(rng, size):
    """Summaries are rotations of three states."""

    def number(name):
        return int(name[-1])

    def act(p, s):
        return f"State{(number(p) + number(s)) % 3}"

    turn = [rng.randrange(3) for _ in range(3)]

    def summary(x):
        return f"Summary{turn[number(x)]}"

    return {
        "act": act,
        "after": lambda p, q: f"Summary{(number(p) + number(q)) % 3}",
        "nothing": "Summary0",
        "summary": summary,
        "update": lambda s, x: act(summary(x), s),
    }


def small_steps(rng, size):
    """Logits with changes of at most M."""
    most = Fraction(rng.randint(1, 4), 8)
    words = tuple(
        (
            (Fraction(rng.randint(-4, 4), 2), most * rng.choice([-1, 0, 1]) / 2),
            Fraction(rng.randint(0, 2), 2),
        )
        for _ in range(size)
    )
    return {"M": most, "words": words}


def models(rng, size):
    """Laws of target and draft over `size` words in each of three contexts."""
    tables = [
        [distributions(rng, size)["tokens"] for _ in range(falsify.NAMED_SIZE)]
        for _ in range(2)
    ]

    def law(which):
        return lambda context, word: tables[which][int(context[-1])][word][which]

    tokens = tuple(rng.randrange(size) for _ in range(rng.randrange(size + 1)))
    return {
        "words": size,
        "p": law(0),
        "q": law(1),
        "x": rng.randrange(size),
        "xs": tokens,
    }


def balanced_ranks(rng, size):
    """Ranks with `size` experts each, and loads with a whole average."""
    held = [[rng.randint(0, 5) for _ in range(size)] for _ in range(size)]
    held[0][0] += -sum(map(sum, held)) % size
    ranks = tuple((number, tuple(slots)) for number, slots in enumerate(held))
    average = sum(map(sum, held)) // size
    given = {"first": ranks[0], "ranks": ranks[1:], "experts": size}
    return given | {"average": average}


MADE = {
    "planner.bounds_are_met": balanced_ranks,
    "verified.step_is_lossless": models,
    "block.block_is_lossless": models,
    "scan.simulation": encoded,
    "speculate.acceptance_is_one_minus_distance": distributions,
    "speculate.acceptance_between": distributions,
    "speculate.acceptance_one_iff_equal": distributions,
    "histogram.selected_bin_contains_quantile": ranked_bin,
    "route.rounding_keeps_order": far_scores,
    "context.segment_acts_as_fold": rotations,
    "context.ranks_compose": rotations,
    "loss.gradient_is_derivative": small_steps,
}
# a premise over all integers cannot be evaluated: these are tested in plain Python
BY_HAND = {
    "window.rolled_window_is_history": "test_windows",
    "window.convolution_reads_window": "test_windows",
}


@pytest.fixture(autouse=True)
def deep():
    """93 layers are a recursion of 93 steps."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(before)


def instance(phi, rng, size, given):
    """True or False at a random instance; None where a premise fails."""
    env = {}
    while phi.op in ("forall", "=>"):
        if phi.op == "=>":
            if not falsify.evaluate(phi.args[0], env):
                return None
            phi = phi.args[1]
            continue
        variables, phi = opened(phi)
        for v in variables:
            made = falsify.value(v.sort, rng, size)
            env[v] = given.get(str(v.data).split("#")[0], made)
    return falsify.evaluate(phi, env)


@pytest.mark.parametrize("name", THEOREMS)
@pytest.mark.parametrize("tries", [TRIES, pytest.param(MANY, marks=pytest.mark.slow)])
def test_the_statement_holds_at_every_size(name, tries):
    if name in BY_HAND:
        by_hand = Path(__file__).with_name("test_definitions.py").read_text()
        assert f"def {BY_HAND[name]}(" in by_hand
        return
    phi = THEOREMS[name].statement()
    quantified = phi.op == "forall"
    for size in SIZES:
        found = 0
        for k in range(MANY * 20):
            rng = random.Random(f"{name} {size} {k}")
            given = MADE[name](rng, size) if name in MADE else {}
            try:
                holds = instance(phi, rng, size, given)
            except Undecided:
                continue
            assert holds is not False, (name, size, k)
            found += holds is True
            if found >= (tries if quantified else 1):
                break
        if quantified:
            assert found >= ENOUGH, f"{name}: {found} instances of size {size}"


@pytest.mark.parametrize("name", THEOREMS)
def test_the_statement_is_said_in_words_with_a_scope(name):
    theorem = THEOREMS[name]
    assert theorem.statement.__doc__
    assert len(theorem.statement.__doc__.split()) >= 5
    assert theorem.scope
    assert set(theorem.hints) <= set(theorem.mutants())
    assert not theorem.statement().free
