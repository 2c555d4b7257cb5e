"""Kimi Delta Attention: every form is the recurrence, in outputs and gradients."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small import gap

from k3.kernels import kda

LENGTHS = [0, 1, 15, 16, 17, 63, 100, 1000]
K, V, H = 12, 20, 3
TOL = 1e-5


def inputs(lens, seed=0, low=-5.0, dtype=torch.float32):
    """q, k, v, g, beta and initial states: normed keys, log-decays in (low, 0)."""
    generator = torch.Generator().manual_seed(seed)
    T = sum(lens)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    q, k = (torch.nn.functional.normalize(normal(T, H, K), dim=-1) for _ in range(2))
    g = low * torch.sigmoid(3 * normal(T, H, K))
    beta = torch.sigmoid(normal(T, H))
    made = [q * K**-0.5, k, normal(T, H, V), g, beta, normal(len(lens), H, V, K)]
    return [x.to(dtype) for x in made]


def run(form, made, lens, backward=True):
    """Outputs, final state and the six gradients of a loss that touches both."""
    leaves = [x.detach().clone().requires_grad_() for x in made]
    out, state = form(*leaves[:5], state=leaves[5], lens=tuple(lens))
    if not backward:
        return [out, state]
    generator = torch.Generator().manual_seed(9)

    def loss(x):
        weight = torch.randn(x.shape, generator=generator, dtype=torch.float64)
        return (x * weight.to(x.dtype)).sum()

    total = loss(out) + loss(state)
    grads = torch.autograd.grad(total, leaves, materialize_grads=True)
    return [out.detach(), state.detach(), *grads]


def agree(made, lens, tol=TOL):
    """Chunk and recurrence in fp32 against the recurrence in fp64."""
    exact = run(kda.recurrent, [x.double() for x in made], lens)
    for form in (kda.chunk, kda.recurrent):
        for x, want in zip(run(form, made, lens), exact, strict=True):
            assert x.isfinite().all()
            assert gap(x, want) < tol


def by_steps(q, k, v, g, beta, *, state, lens):
    """The definition: one step after another, one sequence after another."""
    outs, states, start = [v[:0]], [], 0
    for s, n in enumerate(lens):
        S = state[s : s + 1]
        for t in range(start, start + n):
            row = [x[t : t + 1] for x in (q, k, v, g, beta)]
            out, S = kda.step(*row, state=S)
            outs.append(out)
        states.append(S)
        start += n
    return torch.cat(outs), torch.cat(states)


@pytest.mark.parametrize("T", LENGTHS)
def test_chunk_is_the_recurrence(poisoned, T):
    agree(inputs([T]), [T])


@pytest.mark.parametrize("T", LENGTHS)
def test_log_decay_at_the_floor_on_every_token(poisoned, T):
    made = inputs([T])
    made[3] = torch.full_like(made[3], -5.0)
    agree(made, [T])


@pytest.mark.parametrize("retention", [0.0, 1.0])
@pytest.mark.parametrize("T", [1, 16, 63])
def test_retention_exactly_zero_and_one(poisoned, retention, T):
    made = inputs([T])
    made[3] = torch.full_like(made[3], math.log(retention) if retention else -math.inf)
    agree(made, [T])


def test_retention_zero_on_one_channel_of_one_token(poisoned):
    made = inputs([40])
    made[3][17, 1, 4] = -math.inf
    agree(made, [40])


def test_the_readout_at_retention_zero_is_the_last_value_only():
    made = inputs([20])
    made[3] = torch.full_like(made[3], -math.inf)
    out, _ = kda.chunk(*made[:5], state=made[5], lens=(20,))
    q, k, v, _, beta, _ = made
    assert gap(out, (q * k).sum(-1, keepdim=True) * beta[..., None] * v) < TOL


@pytest.mark.parametrize("form", [kda.chunk, kda.recurrent])
@pytest.mark.parametrize("lens", [[0, 5, 0, 33, 1, 0], [16, 16, 16], [1] * 7, [3, 70]])
def test_packed_sequences_are_each_alone(poisoned, form, lens):
    made = inputs(lens, dtype=torch.float64)
    whole = run(form, made, lens)
    for x, want in zip(whole, run(by_steps, made, lens), strict=True):
        assert gap(x, want) < 1e-12
    bounds = list(itertools.accumulate(lens, initial=0))
    for s, (a, b) in enumerate(itertools.pairwise(bounds)):
        tokens = [x[a:b] for x in made[:5]]
        out, state = form(*tokens, state=made[5][s : s + 1], lens=(b - a,))
        assert gap(whole[0][a:b], out) < 1e-12
        assert gap(whole[1][s : s + 1], state) < 1e-12


@pytest.mark.parametrize("form", [kda.chunk, kda.recurrent])
def test_nothing_leaks_over_a_boundary(form):
    lens = [18, 0, 7, 31]
    made = inputs(lens)
    before = form(*made[:5], state=made[5], lens=tuple(lens))
    changed = [x.clone() for x in made]
    for x in changed[:5]:
        x[18:25] = torch.nan
    changed[5][2] = torch.nan
    after = form(*changed[:5], state=changed[5], lens=tuple(lens))
    keep = torch.ones(sum(lens), dtype=torch.bool)
    keep[18:25] = False
    assert torch.equal(before[0][keep], after[0][keep])
    assert torch.equal(before[1][[0, 1, 3]], after[1][[0, 1, 3]])
    assert after[0][~keep].isnan().all()


@given(
    lens=st.lists(st.integers(0, 40), min_size=1, max_size=5),
    low=st.sampled_from([-0.01, -5.0, -30.0]),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None)
def test_any_lengths_and_decays(lens, low, seed):
    made = inputs(lens, seed, low, torch.float64)
    pairs = zip(
        kda.chunk(*made[:5], state=made[5], lens=tuple(lens)),
        by_steps(*made[:5], state=made[5], lens=lens),
        strict=True,
    )
    for x, want in pairs:
        assert gap(x, want) < 1e-10


@pytest.mark.parametrize("cuts", [[100], [1] * 100, [16, 84], [17, 1, 0, 50, 32]])
def test_a_cut_sequence_is_the_whole_one(cuts):
    made = inputs([100], dtype=torch.float64)
    whole = kda.chunk(*made[:5], state=made[5], lens=(100,))
    outs, state, start = [], made[5], 0
    for n in cuts:
        out, state = kda.chunk(
            *(x[start : start + n] for x in made[:5]), state=state, lens=(n,)
        )
        outs.append(out)
        start += n
    assert gap(torch.cat(outs), whole[0]) < 1e-12
    assert gap(state, whole[1]) < 1e-12


def test_gradients_against_finite_differences():
    """A second opinion that shares no code with the recurrence."""
    made = [x.requires_grad_() for x in inputs([5, 0, 18], dtype=torch.float64)]
    generator = torch.Generator().manual_seed(0)
    seeds = [torch.randn(s, generator=generator) for s in ((23, H, V), (3, H, V, K))]

    def loss(*values):
        out, state = kda.chunk(*values[:5], state=values[5], lens=(5, 0, 18))
        return (out * seeds[0]).sum() + (state * seeds[1]).sum()

    assert torch.autograd.gradcheck(loss, made, fast_mode=True)


def test_the_step_of_the_paper_returns_three():
    """One head, K = V = 1: an empty memory writes 3 with strength 1 and reads it."""
    one = torch.ones(1, 1, 1)
    out, state = kda.step(
        one, one, 3 * one, 0 * one, torch.ones(1, 1), state=torch.zeros(1, 1, 1, 1)
    )
    assert out.item() == state.item() == 3


def test_nan_in_one_token_reaches_only_what_comes_after():
    made = inputs([40])
    made[2][20] = torch.nan
    out, state = kda.chunk(*made[:5], state=made[5], lens=(40,))
    assert out[:16].isfinite().all()
    assert out[20:].isnan().all()
    assert state.isnan().any()


def test_a_layout_made_in_inference_mode_serves_training():
    made, lens = inputs([23, 9]), (23, 9)
    with torch.inference_mode():
        kda.chunk(*made[:5], state=made[5], lens=lens)
        kda.recurrent(*made[:5], state=made[5], lens=lens)
    for form in (kda.chunk, kda.recurrent):
        assert all(x.isfinite().all() for x in run(form, made, lens))


def test_non_contiguous_inputs():
    made = inputs([37], dtype=torch.float64)
    strided = [x.transpose(0, 1).contiguous().transpose(0, 1) for x in made]
    for x, want in zip(
        kda.chunk(*strided[:5], state=strided[5], lens=(37,)),
        kda.chunk(*made[:5], state=made[5], lens=(37,)),
        strict=True,
    ):
        assert gap(x, want) < 1e-14


@pytest.mark.parametrize("form", [kda.chunk, kda.recurrent])
def test_no_sequence_at_all(form):
    out, state = form(*inputs([])[:5], state=inputs([])[5], lens=())
    assert out.shape == (0, H, V)
    assert state.shape == (0, H, V, K)
