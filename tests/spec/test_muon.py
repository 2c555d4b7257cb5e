import numpy as np
import pytest
import torch
from readings import tensor
from readings.carriers import same

from k3.spec import muon


def test_split_and_merge_are_inverse(rng):
    M = rng.normal(size=(6, 4))
    blocks = same(muon.split, M, 3, exact=True)
    np.testing.assert_array_equal(blocks[1], M[2:4])
    np.testing.assert_array_equal(same(muon.merge, blocks, exact=True), M)
    columns = same(muon.split_columns, M, 2, exact=True)
    np.testing.assert_array_equal(columns[1], M[:, 2:])
    np.testing.assert_array_equal(muon.merge_columns(columns), M)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4)])
def test_newton_schulz_nears_an_orthogonal_matrix(rng, shape):
    Q = same(muon.newton_schulz, rng.normal(size=shape))
    values = np.linalg.svd(Q, compute_uv=False)
    assert (values > 0.6).all()
    assert (values < 1.25).all()
    cubic = muon.newton_schulz(rng.normal(size=shape), 40, (1.5, -0.5, 0))
    gram = muon.gram(cubic if shape[0] >= shape[1] else cubic.T)
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-6)


def test_per_head_is_each_head_alone(rng):
    M = rng.normal(size=(6, 4))
    got = muon.per_head(muon.newton_schulz, M, 2)
    np.testing.assert_array_equal(got[3:], muon.newton_schulz(M[3:]))
    assert abs(got - muon.newton_schulz(M)).max() > 1e-2


def test_updates_read_alike(rng):
    M, G = rng.normal(size=(4, 9)), rng.normal(size=(4, 9))
    after, update = same(muon.momentum, M, G, 0.5, exact=True)
    np.testing.assert_allclose(after, M / 2 + G)
    np.testing.assert_allclose(update, M / 4 + G * 1.5)
    W = same(muon.step, M, update, rate=0.01, decay=0.1, exact=True)
    np.testing.assert_allclose(W, M - 0.01 * (0.2 * 3 * update + 0.1 * M))
    same(muon.gram, M, exact=True)
    assert same(muon.clip_factor, np.float64(50), exact=True) == 1
    assert same(muon.clip_factor, np.float64(200), exact=True) == 0.5


def test_gradient(rng):
    X = tensor.array(rng.normal(size=(2, 3))).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: muon.newton_schulz(x, 2), [X])
