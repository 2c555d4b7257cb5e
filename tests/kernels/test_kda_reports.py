"""Public reports about KDA's gate and its chunk form, case by case."""

import math

import pytest
import torch
from small import gap

from k3.kernels import kda

K, V, H = 12, 20, 3


def inputs(T, seed=0, sequences=1):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    q, k = (torch.nn.functional.normalize(normal(T, H, K), dim=-1) for _ in range(2))
    g, beta = -5 * torch.sigmoid(normal(T, H, K)), torch.sigmoid(normal(T, H))
    return [q * K**-0.5, k, normal(T, H, V), g, beta, normal(sequences, H, V, K)]


def gate(z, bound):
    zero = torch.zeros(1)
    return float(kda.gate(torch.tensor([[z]]), zero, torch.zeros(1, 1), bound))


def test_report_11_bounded_and_softplus_gates_differ():
    assert gate(0.0, -5.0) == -2.5
    assert gate(0.0, None) == pytest.approx(-0.6931, abs=1e-4)
    # A clamped softplus would say exactly -5.
    assert gate(10.0, -5.0) == pytest.approx(-4.99977, abs=1e-5)
    assert gate(10.0, -5.0) != -5.0
    assert gate(-10.0, -5.0) == pytest.approx(-2.270e-4, rel=1e-3)
    assert gate(-10.0, None) == pytest.approx(-4.540e-5, rel=1e-3)


def test_report_11_rate_and_bias_enter_per_head_and_channel():
    z, A_log = torch.randn(4, 2, 3), torch.tensor([0.0, math.log(3)])
    bias = torch.randn(2, 3)
    x = z + bias
    bounded, open_ended = (kda.gate(z, A_log, bias, b) for b in (-5.0, None))
    assert gap(bounded[:, 1], -5 * torch.sigmoid(3 * x[:, 1])) < 1e-6
    assert gap(open_ended[:, 1], -3 * torch.log1p(x[:, 1].exp())) < 1e-6
    assert kda.gate(z.bfloat16(), A_log, bias, -5.0).dtype == torch.float32


def test_report_16_one_channel_with_tiny_retention(poisoned):
    made = inputs(64)
    made[3] = torch.full_like(made[3], math.log(0.9))
    made[3][..., 5] = math.log(1e-12)
    exact = kda.recurrent(
        *(x.double() for x in made[:5]), state=made[5].double(), lens=(64,)
    )
    for x, want in zip(
        kda.chunk(*made[:5], state=made[5], lens=(64,)), exact, strict=True
    ):
        assert x.isfinite().all()
        assert gap(x, want) < 1e-5


def test_report_16_a_tile_at_the_floor_stays_in_fp32():
    assert math.exp(5.0 * kda.TILE) < torch.finfo(torch.float32).max
    assert math.exp(5.0 * 18) > torch.finfo(torch.float32).max
    assert kda.MAX_TILE_DECAY == 5.0 * kda.TILE


@pytest.mark.parametrize("T", [1, 15, 16, 17, 63, 64, 65, 127, 130, 500])
def test_report_31_padding_reaches_neither_state_nor_gradient(poisoned, T):
    """Rows behind the last token hold NaN; a slice of them must not be read."""
    made = inputs(T)
    room = [
        torch.cat([x, torch.full_like(x[:1].expand(40, *x.shape[1:]), torch.nan)])
        for x in made[:5]
    ]
    state = made[5].requires_grad_()
    leaves = [x.requires_grad_() for x in room]
    out, final = kda.chunk(*(x[:T] for x in leaves), state=state, lens=(T,))
    exact = [x.detach().double().requires_grad_() for x in made]
    want, want_final = kda.recurrent(*exact[:5], state=exact[5], lens=(T,))
    assert gap(out, want) < 1e-5
    assert gap(final, want_final) < 1e-5
    grads = torch.autograd.grad(out.sum() + final.sum(), [*leaves, state])
    wanted = torch.autograd.grad(want.sum() + want_final.sum(), exact)
    for x, y in zip(grads, wanted, strict=True):
        assert gap(x[: y.shape[0]], y) < 1e-5
    assert all((x[T:] == 0).all() for x in grads[:5])


@pytest.mark.parametrize("form", [kda.chunk, kda.recurrent])
def test_report_73_empty_sequences_keep_their_state(poisoned, form):
    """Boundaries [0, 0, 5, 5, 5, 9, 9]."""
    lens = (0, 5, 0, 0, 4, 0)
    made = [x.requires_grad_() for x in inputs(9, sequences=6)]
    out, final = form(*made[:5], state=made[5], lens=lens)
    for s in (0, 2, 3, 5):
        assert torch.equal(final[s], made[5][s])
    (grad,) = torch.autograd.grad(out.sum() + final.sum(), made[5])
    assert (grad[[0, 2, 3, 5]] == 1).all()
    assert grad.isfinite().all()


@pytest.mark.parametrize("form", [kda.chunk, kda.recurrent])
def test_report_73_no_token_at_all(poisoned, form):
    made = [x.requires_grad_() for x in inputs(0, sequences=2)]
    out, final = form(*made[:5], state=made[5], lens=(0, 0))
    assert out.shape == (0, H, V)
    assert torch.equal(final, made[5])
    grads = torch.autograd.grad(out.sum() + final.sum(), [made[2], made[5]])
    assert grads[0].shape == (0, H, V)
    assert (grads[1] == 1).all()


@pytest.mark.parametrize("form", [kda.chunk, kda.recurrent])
def test_report_73_one_token_is_one_step(form):
    made = inputs(1)
    for x, want in zip(
        form(*made[:5], state=made[5], lens=(1,)),
        kda.step(*made[:5], state=made[5]),
        strict=True,
    ):
        assert gap(x, want) < 1e-6
