from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readings.carriers import fractions, same

from k3.spec import draft, speculate


@st.composite
def laws(draw, size=3):
    counts = st.lists(st.integers(0, 5), min_size=size, max_size=size)
    weights = draw(counts.filter(any))
    return np.array([Fraction(w, sum(weights)) for w in weights], dtype=object)


@given(laws(), laws())
def test_one_step_is_lossless(p, q):
    accepted = speculate.acceptance(p, q)
    assert accepted == 1 - speculate.total_variation(p, q)
    assert accepted == speculate.acceptance(q, p)
    assert (speculate.emitted(p, q) == p).all()
    assert (accepted == 1) == (p == q).all()
    if accepted < 1:
        corrected = speculate.correction(p, q)
        assert sum(corrected) == 1
        mixed = np.array([min(a, b) for a, b in zip(p, q, strict=True)])
        assert (mixed + (1 - accepted) * corrected == p).all()


@settings(deadline=None, max_examples=40)
@given(laws(4), laws(4), st.integers(0, 4))
def test_several_candidates_of_a_place_are_lossless(p, q, count):
    assert (speculate.candidates_law(p, q, count) == p).all()


def test_a_second_candidate_is_judged_by_what_the_first_has_left():
    """Both drawn from [1/2, 1/2, 0], the first rejected: rest is certain of 2."""
    p = np.array([Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)])
    q = np.array([Fraction(1, 2), Fraction(1, 2), Fraction(0)])
    second = np.array([Fraction(0), Fraction(1), Fraction(0)])
    given_ = [0, 1], [-1, -1], [p, p, p], [q, second]
    late = [Fraction(3, 4), Fraction(0), Fraction(0)]
    assert speculate.verify_tree(*given_, late) == [2]
    soon = [Fraction(1, 4), Fraction(0), Fraction(1, 3)]
    assert speculate.verify_tree(*given_, soon) == [0, 1]


def conditional(seed):
    def law(prefix):
        rng = np.random.default_rng([seed, *prefix])
        weights = rng.integers(0, 4, 3)
        weights[rng.integers(3)] += 1
        return np.array([Fraction(int(w), int(weights.sum())) for w in weights])

    return law


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.integers(0, 3))
def test_a_whole_block_is_lossless(seed, length):
    p, q = conditional(seed), conditional(seed + 1)
    got = speculate.block_law(p, q, length)
    assert got == speculate.target_law(p, length + 1)
    assert sum(got.values()) == 1


def test_verify_follows_the_law():
    p, q = conditional(5), conditional(9)
    rng = np.random.default_rng(0)
    draws, counts = 3000, {}
    for _ in range(draws):
        prefix = []
        for _ in range(2):
            prefix.append(speculate.pick(q(tuple(prefix)), rng.uniform()))
        ps = [p(tuple(prefix[:i])) for i in range(3)]
        qs = [q(tuple(prefix[:i])) for i in range(2)]
        out = speculate.verify(prefix, ps, qs, list(rng.uniform(size=3)))
        counts[out[0]] = counts.get(out[0], 0) + 1
    for token, wanted in enumerate(p(())):
        assert counts.get(token, 0) / draws == pytest.approx(float(wanted), abs=0.03)


def test_verify_edges():
    one = np.array([1.0, 0.0])
    assert speculate.verify([0], [one, one], [one], [0.99, 0.5]) == [0, 0]
    other = np.array([0.0, 1.0])
    assert speculate.verify([0], [other, one], [one], [0.0, 0.5]) == [1]
    assert speculate.verify([], [other], [], [0.2]) == [1]


def test_reads_alike():
    p, q = np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.5, 0.25])
    for function in (
        speculate.acceptance,
        speculate.total_variation,
        speculate.residual,
        speculate.correction,
        speculate.emitted,
    ):
        same(function, p, q, exact=True)
    same(speculate.keep_probability, p, q, 1, exact=True)
    same(speculate.likelihood_loss, p, q)
    same(speculate.unrolled_loss, [p, q], [q, q])
    assert speculate.pick(fractions(p), Fraction(1, 2)) == 1


def test_fusion_starts_at_the_final_block(rng):
    outputs = list(rng.normal(size=(6, 4)))
    triple = same(draft.features, outputs, exact=True)
    np.testing.assert_array_equal(
        triple, np.concatenate([outputs[i] for i in (0, 3, 5)])
    )
    W = same(draft.initial_fusion, outputs[0], exact=True)
    fused = same(draft.fuse, W, triple, exact=True)
    np.testing.assert_array_equal(fused, outputs[5])
    square = rng.normal(size=(4, 4))
    same(draft.token_input, square, square.T, outputs[0], fused, exact=True)


def test_unroll_feeds_its_own_feature(rng):
    answers = draft.unroll(lambda e, f: (f * 2 + e, f), 1, [0, 1, 0])
    assert answers == [1, 2, 5]
