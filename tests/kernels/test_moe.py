"""Routing and the grouped product: ties, idle experts, counts, gradients."""

import pytest
import tolerances
import torch
from hypothesis import given
from hypothesis import strategies as st
from small import gap

from k3.kernels import moe

D, L, F = 9, 6, 5


def case(T, E, k, dtype=torch.float64, seed=0):
    """x, router weight, bias, latent rows and stacked experts w1, w2."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(T, D), (E, D), (E,), (T, L), (E, F, L), (E, L, F)]
    return [torch.randn(*s, generator=generator).to(dtype) for s in shapes]


def experts(w1, w2, calls=None):
    def run(e, rows):
        if calls is not None:
            calls.append((e, rows.shape[0]))
        return torch.tanh(rows @ w1[e].T) @ w2[e].T

    return run


def plain_loop(z, index, weights, run):
    """Token by token, expert by expert."""
    out = torch.zeros_like(z)
    for t in range(z.shape[0]):
        for e, w in zip(index[t].tolist(), weights[t], strict=True):
            out[t] = out[t] + w * run(e, z[t : t + 1])[0]
    return out


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(1, 12))
def test_ties_go_to_the_lower_index(row, k):
    k = min(k, len(row))
    want = sorted(range(len(row)), key=lambda e: (-row[e], e))[:k]
    assert moe.top_k(torch.tensor([row, row]).float(), k).tolist() == [want, want]


def test_a_tie_over_the_cut_goes_to_the_lower_index():
    values = torch.zeros(1, 896)
    assert moe.top_k(values, 16).tolist() == [list(range(16))]


def test_weights_are_chosen_scores_over_their_sum():
    x, weight, bias, *_ = case(7, 11, 3)
    index, weights = moe.route(x, weight, bias, 3, 2.5)
    s = torch.sigmoid(x @ weight.T)
    want = torch.argsort(s + bias, -1, descending=True)[:, :3]
    assert torch.equal(index.sort(-1).values, want.sort(-1).values)
    chosen = s.gather(-1, index)
    assert gap(weights, 2.5 * chosen / chosen.sum(-1, keepdim=True)) < 1e-12


def test_the_bias_chooses_but_does_not_weigh():
    x, weight, _, *_ = case(5, 4, 2)
    bias = torch.tensor([100.0, 0, 100.0, 0], dtype=torch.float64)
    index, weights = moe.route(x, weight, bias, 2, 1.0)
    s = torch.sigmoid(x @ weight.T).gather(-1, index)
    assert (index.sort(-1).values == torch.tensor([0, 2])).all()
    assert gap(weights, s / s.sum(-1, keepdim=True)) < 1e-12


def test_vanishing_scores_give_weight_zero_not_nan():
    x, weight = torch.ones(2, D), torch.full((4, D), -1e3)
    _, weights = moe.route(x, weight, torch.zeros(4), 2, 1.0)
    assert (weights == 0).all()


@pytest.mark.parametrize("num_tokens", [1, 2, 3, 8, 33])
def test_report_05_a_bias_near_seven_decides_in_fp32(num_tokens):
    """Scores .5 and .495, biases 7 and 7.01: expert 1, whatever the batch."""
    logit = torch.log(torch.tensor(0.495 / 0.505))
    x = torch.zeros(num_tokens, D).bfloat16()
    x[:, 0] = 1
    weight = torch.zeros(2, D)
    weight[1, 0] = logit
    bias = torch.tensor([7.0, 7.01])
    index, weights = moe.route(x, weight, bias, 1, 1.0)
    assert index.tolist() == [[1]] * num_tokens
    assert weights.dtype == torch.float32
    rounded = bias.bfloat16()
    assert rounded[0] == rounded[1]
    assert moe.route(x, weight, rounded, 1, 1.0)[0].tolist() == [[0]] * num_tokens


def test_report_05_router_product_of_narrow_inputs_is_fp32():
    x, weight = torch.randn(6, D).bfloat16(), torch.randn(4, D).bfloat16()
    want = torch.sigmoid(x.double() @ weight.double().T)
    assert gap(moe.scores(x, weight), want) < 1e-6


@pytest.mark.parametrize("T", [0, 1, 2, 5, 40])
def test_combine_is_the_plain_loop(poisoned, T):
    x, weight, bias, z, w1, w2 = case(T, 11, 3)
    index, weights = moe.route(x, weight, bias, 3, 1.0)
    run = experts(w1, w2)
    want = plain_loop(z, index, weights, run)
    got = moe.combine(z, index, weights, run)
    assert gap(got, want) < tolerances.of("moe", torch.float64)


def test_only_used_experts_run_and_once_over_their_own_rows():
    x, weight, bias, z, w1, w2 = case(20, 50, 2)
    index, weights = moe.route(x, weight, bias, 2, 1.0)
    calls = []
    moe.combine(z, index, weights, experts(w1, w2, calls))
    used = sorted(set(index.flatten().tolist()))
    assert [e for e, _ in calls] == used
    counts = {e: int((index == e).sum()) for e in used}
    # A few rows may be repeated for the sake of equal bits; never fewer than routed.
    assert all(n >= counts[e] for e, n in calls)


@pytest.mark.parametrize("T", [1, 2, 9])
def test_the_sum_is_wide_for_narrow_experts(T):
    """In bf16 the weighted sum must not round after each expert."""
    x, weight, bias, z, w1, w2 = case(T, 11, 5, torch.float32)
    index, weights = moe.route(x, weight, bias, 5, 1.0)
    narrow = [t.bfloat16() for t in (z, w1, w2)]
    run = experts(*narrow[1:])
    got = moe.combine(narrow[0], index, weights, run)
    parts = plain_loop(
        narrow[0].float(), index, weights, lambda e, r: run(e, r.bfloat16()).float()
    )
    assert got.dtype == torch.float32
    assert gap(got, parts) < 1e-6


def test_report_32_idle_experts_have_zero_gradients(poisoned):
    """896 experts, 4 tokens, top-16: two backward passes over reused memory."""
    x, weight, bias, z, w1, w2 = case(4, 896, 16)
    leaves = [t.requires_grad_() for t in (z, w1, w2)]
    index, weights = moe.route(x, weight, bias, 16, 1.0)
    idle = torch.ones(896, dtype=torch.bool)
    idle[index.flatten()] = False
    assert int(idle.sum()) >= 832
    want = plain_loop(z, index, weights, experts(w1, w2))
    wanted = torch.autograd.grad(want.square().sum(), leaves)
    for _ in range(2):
        junk = torch.full((896, F, L), torch.nan, dtype=torch.float64)
        del junk
        got = moe.combine(z, index, weights, experts(w1, w2))
        grads = torch.autograd.grad(got.square().sum(), leaves)
        for a, b in zip(grads, wanted, strict=True):
            assert gap(a, b) < 1e-12
        assert (grads[1][idle] == 0).all()
        assert (grads[2][idle] == 0).all()


def test_gradients_of_the_router_go_through_weights_only():
    x, weight, bias, z, w1, w2 = case(6, 5, 2)
    weight.requires_grad_()
    bias.requires_grad_()
    index, weights = moe.route(x, weight, bias, 2, 1.0)
    loss = moe.combine(z, index, weights, experts(w1, w2)).square().sum()
    grads = torch.autograd.grad(loss, [weight, bias], allow_unused=True)
    assert grads[0].abs().max() > 0
    assert grads[1] is None


@pytest.mark.parametrize("live", [0, 1, 3])
def test_report_85_a_bucket_with_a_tail_of_nan(live):
    """Rows behind the live ones are not routed, counted, or mixed in."""
    x, weight, bias, z, w1, w2 = case(8, 11, 3, torch.float32)
    x[live:], z[live:] = torch.nan, torch.nan
    index, weights = moe.route(x[:live], weight, bias, 3, 1.0)
    calls = []
    got = moe.combine(z[:live], index, weights, experts(w1, w2, calls))
    alone = moe.combine(z[:live].clone(), index, weights, experts(w1, w2))
    assert torch.equal(got, alone)
    assert got.isfinite().all()
    assert index.numel() == 3 * live
    assert bool(calls) == bool(live)


def test_report_85_a_nan_row_leaves_the_others_their_bits():
    """Should a padded row be routed all the same: it stays in its row."""
    x, weight, bias, z, w1, w2 = case(8, 11, 3, torch.float32)
    before = moe.combine(z, *moe.route(x, weight, bias, 3, 1.0), experts(w1, w2))
    x[5], z[5] = torch.nan, torch.nan
    index, weights = moe.route(x, weight, bias, 3, 1.0)
    after = moe.combine(z, index, weights, experts(w1, w2))
    keep = torch.arange(8) != 5
    assert ((index >= 0) & (index < 11)).all()
    assert after[5].isnan().all()
    assert gap(after[keep], before[keep]) < 1e-6


@pytest.mark.parametrize("repeat", range(5))
def test_report_70_a_neighbours_content_changes_no_bit(repeat):
    """Its experts change, and with them the number of rows beside mine."""
    x, weight, bias, z, w1, w2 = case(8, 11, 3, torch.float32)
    index, weights = moe.route(x, weight, bias, 3, 1.0)
    before = moe.combine(z, index, weights, experts(w1, w2))[0]
    generator = torch.Generator().manual_seed(repeat)
    x[1:] = torch.randn(7, D, generator=generator)
    z[1:] = torch.randn(7, L, generator=generator)
    index, weights = moe.route(x, weight, bias, 3, 1.0)
    after = moe.combine(z, index, weights, experts(w1, w2))[0]
    assert int((before != after).sum()) == 0
