"""Every statement holds on random exact instances of at least three sizes.

Nothing of the prover is used: premises and both sides are computed by the
definitions, which test_definitions compares with plain Python.
"""

import random

import pytest

from k3 import proof
from k3.logic import falsify
from k3.logic.interval import Undecided
from k3.logic.match import opened

THEOREMS = proof.theorems()
SIZES = (1, 2, 3, 4)
TRIES = 80
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


MADE = {"scan.simulation": encoded}


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
def test_the_statement_holds_at_every_size(name):
    phi = THEOREMS[name].statement()
    quantified = phi.op == "forall"
    for size in SIZES:
        found = 0
        for k in range(TRIES * 4):
            rng = random.Random(f"{name} {size} {k}")
            given = MADE[name](rng, size) if name in MADE else {}
            try:
                holds = instance(phi, rng, size, given)
            except Undecided:
                continue
            assert holds is not False, (name, size, k)
            found += holds is True
            if found >= (TRIES if quantified else 1):
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
