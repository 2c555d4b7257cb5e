"""Drafted blocks: the logic's laws are the spec's, and both are the target's."""

import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from k3.logic.falsify import call
from k3.proof import block, verified
from k3.spec import speculate as spec

SIZES = [(1, 1), (2, 2), (3, 2), (2, 3), (2, 0)]


def conditional(seed, words):
    """A random law after every prefix, some words impossible."""

    def law(prefix):
        rng = random.Random(f"{seed} {prefix}")
        parts = [rng.randrange(4) for _ in range(words)]
        parts[rng.randrange(words)] += 1
        return np.array([Fraction(part, sum(parts)) for part in parts], dtype=object)

    return law


def entry(law):
    return lambda prefix, word: law(prefix)[word]


@pytest.mark.parametrize(("words", "drafted"), SIZES)
@pytest.mark.parametrize("same", [False, True])
def test_a_block_has_the_law_of_the_target(words, drafted, same):
    p, q = conditional("p", words), conditional("p" if same else "q", words)
    length = drafted + 1
    target, law = spec.target_law(p, length), spec.block_law(p, q, drafted)
    assert law == target
    models = [words, entry(p), entry(q)]

    def extend(prefix, word):
        return (*prefix, word)

    for tokens in product(range(words), repeat=length):
        one = call(block.TARGET, [entry(p), extend, (), tokens])
        whole = call(block.BLOCK, [*models, extend, drafted, (), tokens])
        assert one == whole == target[tokens]


@pytest.mark.parametrize("words", [1, 2, 5])
def test_a_verified_token_has_the_law_of_the_target(words):
    rejections = set()
    for seed in range(20):
        p, q = (conditional(f"{name}{seed}", words)(()) for name in "pq")
        models = [words, lambda c, i: p[i], lambda c, i: q[i]]  # noqa: B023
        rest = call(verified.REST, [*models, ()])
        assert rest == sum(spec.residual(p, q)) == 1 - spec.acceptance(p, q)
        rejected = call(verified.REJECTED, [*models, ()])
        assert rejected == rest
        rejections.add(rejected > 0)
        for word in range(words):
            keep = call(verified.KEEP, [p[word], q[word]])
            if q[word]:
                assert keep == spec.keep_probability(p, q, word)
            correction = call(verified.CORRECTION, [*models, (), word])
            if rest:
                assert correction == spec.correction(p, q)[word]
            emitted = q[word] * keep + rejected * correction
            assert emitted == spec.emitted(p, q)[word] == p[word]
    assert (True in rejections) == (words > 1)
