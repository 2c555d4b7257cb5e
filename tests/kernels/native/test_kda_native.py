"""KDA natively: PyTorch's recurrence in values and gradients, at any size and level."""

import os
import signal
import time

import pytest
import torch
from levels import LEVELS, at_level
from small import gap

from k3.errors import ShapeError
from k3.kernels import choose, kda
from k3.kernels.native import kda as native

SHAPES = [
    ((1,), 3, 12, 20),
    ((0, 5, 0, 33, 1, 0), 2, 17, 33),
    ((63, 100), 1, 100, 63),
    ((8, 9), 1, 16, 1),
    ((130,), 1, 1, 5),
]
TOL = 1e-5


def inputs(lens, H, K, V, low=-5.0):
    """q, k, v, g, beta and states: normed keys, log-decays in (low, 0)."""
    generator = torch.Generator().manual_seed(K)
    T = sum(lens)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    q, k = (torch.nn.functional.normalize(normal(T, H, K), dim=-1) for _ in range(2))
    g, beta = low * torch.sigmoid(3 * normal(T, H, K)), torch.sigmoid(normal(T, H))
    return [q * K**-0.5, k, normal(T, H, V), g, beta, normal(len(lens), H, V, K)]


def run(form, made, lens):
    """Outputs, final states and six gradients of a loss that touches both."""
    leaves = [x.detach().clone().requires_grad_() for x in made]
    out, state = form(*leaves[:5], state=leaves[5], lens=tuple(lens))
    generator = torch.Generator().manual_seed(9)

    def loss(x):
        weight = torch.randn(x.shape, generator=generator, dtype=torch.float64)
        return (x * weight.to(x.dtype)).sum()

    grads = torch.autograd.grad(loss(out) + loss(state), leaves)
    return [out.detach(), state.detach(), *grads]


def agree(made, lens):
    exact = run(kda.recurrent, [x.double() for x in made], lens)
    for x, want in zip(run(kda.chunk, made, lens), exact, strict=True):
        assert x.isfinite().all()
        assert gap(x, want) < TOL


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("lens", "H", "K", "V"), SHAPES)
def test_chunk_is_the_recurrence_at_every_level(poisoned, level, lens, H, K, V):
    with at_level(level):
        agree(inputs(lens, H, K, V), lens)


@pytest.mark.parametrize("low", [-1e-4, -30.0, -200.0, -torch.inf])
def test_report_16_any_decay_at_all(poisoned, low):
    made = inputs((70, 7), 2, 12, 20)
    made[3][::3, :, 5] = low
    agree(made, (70, 7))


def test_the_pytorch_form_gives_the_same():
    made, lens = inputs((63, 100), 2, 12, 20), (63, 100)
    found = run(kda.chunk, made, lens)
    with choose.use("torch"):
        wanted = run(kda.chunk, made, lens)
    for x, want in zip(found, wanted, strict=True):
        assert gap(x, want) < TOL


@pytest.mark.parametrize("lens", [(100,), (64, 64), (3, 65, 0)])
def test_without_gradients_nothing_differs_by_a_bit(lens):
    made = inputs(lens, 2, 12, 20)
    recorded = run(kda.chunk, made, lens)
    out, state = kda.chunk(*made[:5], state=made[5], lens=lens)
    assert torch.equal(out, recorded[0])
    assert torch.equal(state, recorded[1])


def test_threads_change_no_bit():
    lens = (70, 100, 5)
    made = inputs(lens, 3, 32, 48)
    try:
        found = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(run(kda.chunk, made, lens))
    finally:
        torch.set_num_threads(1)
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_a_step_is_one_token_of_every_sequence():
    made = inputs((1, 1, 1), 2, 17, 33)
    out, state = kda.step(*made[:5], state=made[5])
    exact = [x.double() for x in made]
    want, after = kda.step(*exact[:5], state=exact[5])
    assert gap(out, want) < TOL
    assert gap(state, after) < TOL


def test_views_without_copies_and_odd_addresses():
    """Slices of one wide row, off by one element, as a projection leaves them."""
    lens, H, K, V = (37,), 2, 12, 20
    made = inputs(lens, H, K, V)
    wide = torch.full((37, H, 3 * K + V + 2), torch.nan)
    starts = [1, 1 + K, 1 + 2 * K, 1 + 2 * K + V]
    views = [wide[..., s : s + x.shape[-1]] for s, x in zip(starts, made, strict=False)]
    for view, x in zip(views, made, strict=False):
        view.copy_(x)
    beta = made[4].T.contiguous().T
    state = made[5].mT.contiguous().mT
    found = kda.chunk(*views, beta, state=state, lens=lens)
    wanted = kda.chunk(*made[:5], state=made[5], lens=lens)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_what_does_not_fit_is_refused():
    made = inputs((9,), 2, 12, 20)
    for lens in ((8,), (9, 0), (10, -1)):
        with pytest.raises(ShapeError, match=r"one length a sequence"):
            native.run(tuple(made[:5]), made[5], lens, kept=False)
    with pytest.raises(ShapeError, match=r"beta \[T H\]"):
        native.run((*made[:4], made[4][:, :1]), made[5], (9,), kept=False)


def test_a_forked_child_starts_its_own_threads():
    """OpenMP's threads do not survive a fork; a kernel that waited would hang."""
    made, lens = inputs((600,), 4, 32, 32), (600,)
    try:
        torch.set_num_threads(2)
        want, _, _ = native.run(tuple(made[:5]), made[5], lens, kept=False)
        child = os.fork()
        if child == 0:
            got, _, _ = native.run(tuple(made[:5]), made[5], lens, kept=False)
            # numpy compares without torch's threads, which would hang here.
            os._exit(0 if (got.numpy() == want.numpy()).all() else 1)
    finally:
        torch.set_num_threads(1)
    deadline = time.monotonic() + 30
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    assert done[1] == 0
