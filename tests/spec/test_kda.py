import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from readings.carriers import fractions, same

from k3.spec import kda, kda_layer, norm, ops


def tokens(rng, T=5, K=3, V=4):
    q, k = (norm.l2_norm(rng.normal(size=(T, K))) for _ in range(2))
    alpha, beta = rng.uniform(0.1, 1, (T, K)), rng.uniform(0, 1, T)
    S, v = rng.normal(size=(K, V)), rng.normal(size=(T, V))
    return S, q, k, v, alpha, beta


def layer(rng, D=6, H=2, K=3, V=4, R=2, W=4):
    shapes = {
        "q_proj.weight": (H * K, D),
        "k_proj.weight": (H * K, D),
        "v_proj.weight": (H * V, D),
        "q_conv1d.weight": (H * K, 1, W),
        "k_conv1d.weight": (H * K, 1, W),
        "v_conv1d.weight": (H * V, 1, W),
        "f_a_proj.weight": (R, D),
        "f_b_proj.weight": (H * K, R),
        "dt_bias": (H * K,),
        "A_log": (H,),
        "b_proj.weight": (H, D),
        "g_proj.weight": (H * V, D),
        "o_norm.weight": (V,),
        "o_proj.weight": (D, H * V),
    }
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def test_update_reads_alike_everywhere(rng):
    S, _, k, v, alpha, beta = tokens(rng)
    after = same(kda.update, S, k[0], v[0], alpha[0], beta[0], exact=True)
    product = kda.transition(k[0], alpha[0], beta[0]) @ S
    np.testing.assert_allclose(after, product + beta[0] * np.outer(k[0], v[0]))
    same(kda.transition, k[0], alpha[0], beta[0], exact=True)


def test_update_is_the_delta_rule_entry_by_entry(rng):
    S, _, k, v, alpha, beta = tokens(rng)
    after = kda.update(S, k[0], v[0], alpha[0], beta[0])
    D = alpha[0][:, None] * S
    for i in range(3):
        for j in range(4):
            seen = sum(k[0][m] * D[m, j] for m in range(3))
            wanted = D[i, j] - beta[0] * k[0][i] * (seen - v[0][j])
            assert after[i, j] == pytest.approx(wanted)


@pytest.mark.parametrize("T", [1, 2, 5])
def test_recurrent_and_chunk_agree_exactly(rng, T):
    S, q, k, v, alpha, beta = (fractions(x) for x in tokens(rng, T))
    one = kda.recurrent(S, q, k, v, alpha=alpha, beta=beta)
    two = kda.chunk(S, q, k, v, alpha=alpha, beta=beta)
    assert (one[0] == two[0]).all()
    assert (one[1] == two[1]).all()


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_any_cut_into_chunks_is_the_recurrence(sizes):
    rng = np.random.default_rng(sum(sizes))
    S, q, k, v, alpha, beta = tokens(rng, sum(sizes))
    one = kda.recurrent(S, q, k, v, alpha=alpha, beta=beta)
    two = kda.chunked(S, q, k, v, alpha=alpha, beta=beta, sizes=sizes)
    np.testing.assert_allclose(one[0], two[0], atol=1e-9)
    np.testing.assert_allclose(one[1], two[1], atol=1e-9)


def test_chunk_parts_read_alike_everywhere(rng):
    S, q, k, v, alpha, beta = tokens(rng)
    same(kda.recurrent, S, q, k, v, alpha=alpha, beta=beta, exact=True)
    same(kda.chunk, S, q, k, v, alpha=alpha, beta=beta, exact=True)
    Gamma = same(kda.cumulative, alpha, exact=True)
    same(kda.wy, k, v, Gamma, beta, exact=True)
    between = same(kda.decay, alpha, 2, 4, exact=True)
    np.testing.assert_allclose(between, Gamma[4] / Gamma[1])
    assert (kda.decay(alpha, 3, 2) == 1).all()


@pytest.mark.parametrize("C", [1, 2, 5, 16])
def test_nilpotent_inverse_is_the_inverse(rng, C):
    L = np.tril(rng.normal(size=(C, C)), -1)
    inverse = kda.nilpotent_inverse(fractions(L))
    eye = fractions(np.eye(C))
    assert ((eye + fractions(L)) @ inverse == eye).all()


def test_gate_stays_in_its_interval(rng):
    z = np.array([-50.0, -1.0, 0.0, 1.0, 50.0])
    alpha = same(kda.retention, z, np.float64(0.3))
    assert (alpha >= np.exp(-5)).all()
    assert (alpha <= 1).all()
    assert alpha[2] == pytest.approx(0.0820849986)
    soft = same(kda.gate, z, np.float64(0.3), floor=None)
    assert (soft <= 0).all()
    assert kda.tile_bound() == -80


def test_conv_history_window_and_sequence_agree(rng):
    x, w = rng.normal(size=(6, 3)), rng.normal(size=(3, 4))
    whole = same(kda.short_conv_sequence, x, w, exact=True)
    for t in range(6):
        window = kda_layer.pack(list(x[t::-1]), 4)
        np.testing.assert_allclose(same(kda.short_conv, window, w), whole[t])
    # The release: y_t = sum_j w[c, j] x_{t-3+j}.
    wanted = sum(w[:, j] * x[5 - 3 + j] for j in range(4))
    np.testing.assert_allclose(whole[5], wanted)


def test_layer_on_window_history_and_sequence(rng):
    weights, xs = layer(rng), rng.normal(size=(6, 6))
    S, window = kda_layer.empty_state(weights, xs[0], heads=2)
    T, history = S, []
    _, outputs = same(kda_layer.sequence, weights, list(xs), heads=2)
    for x, wanted in zip(xs, outputs, strict=True):
        S, window, y = kda_layer.step(weights, S, window, x, heads=2)
        T, history, z = kda_layer.history_step(weights, T, history, x, heads=2)
        np.testing.assert_array_equal(y, wanted)
        np.testing.assert_array_equal(y, z)
        np.testing.assert_array_equal(window, kda_layer.pack(history, 4))
    np.testing.assert_array_equal(S, T)


def test_readings_differ_by_the_query_scale(rng):
    weights, window = layer(rng), rng.normal(size=(4, 6))
    release = kda_layer.prepare(weights, window, heads=2)
    paper = kda_layer.prepare(weights, window, heads=2, reading="paper")
    np.testing.assert_allclose(release[0] * 3**0.5, paper[0])
    for one, other in zip(release[1:], paper[1:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_output_gate_of_low_rank(rng):
    weights, x = layer(rng), rng.normal(size=6)
    full = kda_layer.output_gate(weights, x)
    up, down = rng.normal(size=(8, 2)), rng.normal(size=(2, 6))
    low = {"g_a_proj.weight": down, "g_b_proj.weight": up}
    gate = same(kda_layer.output_gate, low, x)
    assert gate.shape == full.shape
    np.testing.assert_allclose(gate, ops.sigmoid(up @ (down @ x)))


def test_gradients_exist_and_are_right(rng):
    args = [torch.tensor(x, requires_grad=True) for x in tokens(rng, T=3)]

    def chunk(S, q, k, v, alpha, beta):
        return kda.chunk(S, q, k, v, alpha=alpha, beta=beta)

    def recurrent(S, q, k, v, alpha, beta):
        return kda.recurrent(S, q, k, v, alpha=alpha, beta=beta)

    assert torch.autograd.gradcheck(chunk, args)
    assert torch.autograd.gradcheck(recurrent, args)
