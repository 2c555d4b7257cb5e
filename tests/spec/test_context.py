import numpy as np
import pytest
from readings.carriers import fractions, same

from k3.spec import context, kda, norm


def part(rng, T, K=3, V=2):
    q, k = (norm.l2_norm(rng.normal(size=(T, K))) for _ in range(2))
    alpha, beta = rng.uniform(0.1, 1, (T, K)), rng.uniform(0, 1, T)
    return q, k, rng.normal(size=(T, V)), alpha, beta


def test_a_token_is_an_affine_map(rng):
    _, k, v, alpha, beta = part(rng, 1)
    S = rng.normal(size=(3, 2))
    summary = same(context.token, k[0], v[0], alpha[0], beta[0], exact=True)
    after = same(context.act, summary, S, exact=True)
    np.testing.assert_allclose(after, kda.update(S, k[0], v[0], alpha[0], beta[0]))
    nothing = same(context.nothing, S, exact=True)
    np.testing.assert_array_equal(context.act(nothing, S), S)


@pytest.mark.parametrize("sizes", [[1], [3, 1, 2], [1, 1, 1, 1, 1], [2, 4, 1]])
def test_parallel_is_sequential(rng, sizes):
    parts = [tuple(fractions(x) for x in part(rng, T)) for T in sizes]
    S = fractions(rng.normal(size=(3, 2)))
    whole = [np.concatenate(column) for column in zip(*parts, strict=True)]
    q, k, v, alpha, beta = whole
    last, outputs = kda.recurrent(S, q, k, v, alpha=alpha, beta=beta)
    got = context.parallel(S, parts)
    assert (got[0] == last).all()
    assert (got[1] == outputs).all()
    summaries = [context.segment(k, v, a, b) for _, k, v, a, b in parts]
    scanned = context.starts(S, summaries)
    for r, prefix in enumerate(context.tree(summaries)):
        assert (context.act(prefix, S) == scanned[r + 1]).all()


def test_segments_read_alike(rng):
    _, k, v, alpha, beta = part(rng, 3)
    same(context.segment, k, v, alpha, beta, exact=True)
    same(
        context.parallel,
        rng.normal(size=(3, 2)),
        [part(rng, 2), part(rng, 1)],
        exact=True,
    )
