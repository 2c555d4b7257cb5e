"""The draft: the logic's functions are the spec's."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from k3.logic import interval
from k3.logic.falsify import call
from k3.proof import draft, draft_loss
from k3.spec import draft as spec
from k3.spec import speculate

SIZES = [1, 2, 5]


def vector(rng, size):
    return np.array([Fraction(rng.randrange(-9, 10), 2) for _ in range(size)])


@pytest.mark.parametrize("n", SIZES)
def test_the_initial_fusion_is_that_of_the_spec(n):
    rng = random.Random(n)
    low, middle, high, embedding = (vector(rng, n) for _ in range(4))
    triple = spec.features([low, vector(rng, n), vector(rng, n), middle, high])
    W = spec.initial_fusion(high)
    for j in range(n):
        for m in range(3 * n):
            assert call(draft.INITIAL, [n, j, m]) == W[j][m]
    fused = spec.fuse(W, triple)
    features = [v.__getitem__ for v in (low, middle, high)]
    ours = [call(draft.FUSED, [n, *features, j]) for j in range(n)]
    assert ours == list(fused) == list(high)
    A, B = (np.stack([vector(rng, n) for _ in range(n)]) for _ in range(2))
    inputs = spec.token_input(A, B, embedding, high)
    entries = [lambda i, j: A[i][j], lambda i, j: B[i][j]]
    vectors = [embedding.__getitem__, high.__getitem__]
    for i in range(n):
        assert call(draft.INPUT, [n, *entries, *vectors, i]) == inputs[i]


@pytest.mark.parametrize("steps", [0, 3, 7])
def test_the_unroll_is_that_of_the_spec(steps):
    def step(feature, embedding):
        return f"{feature}{embedding}", f"answer to {feature} and {embedding}"

    embeddings = tuple("abcdefg"[:steps])
    ours = call(draft_loss.UNROLL, [step, "f", embeddings])
    assert list(ours) == spec.unroll(lambda e, f: step(f, e), "f", embeddings)
    assert len(ours) == steps
    assert spec.STEPS == 7


@pytest.mark.parametrize("size", SIZES)
def test_the_loss_is_infinite_exactly_without_overlap(size):
    rng = random.Random(size)
    seen = set()
    for _ in range(60):
        p, q = (
            np.array([Fraction(rng.randrange(3), 4) for _ in range(size)])
            for _ in range(2)
        )
        tokens = tuple(zip(p, q, strict=True))
        overlap = call(draft_loss.OVERLAP, [tokens])
        assert overlap == speculate.acceptance(p, q)
        infinite, value = call(draft_loss.LOSS, [tokens])
        assert infinite == all(a == 0 or b == 0 for a, b in tokens)
        seen.add(infinite)
        if not infinite:
            found = interval.enclose(value)
            assert float(found.low) == pytest.approx(-math.log(overlap), abs=1e-12)
    assert seen == {False, True}
