"""A KDA layer's native pass against the composed PyTorch layer."""

import pytest
import small
import torch
from levels import LEVELS, at_level
from small import gap

from k3.kernels import choose
from k3.model.kda import KDA

CASES = [(1, 100, None), (3, 5, None), (1, 74, (0, 63, 1, 10)), (2, 0, None)]
TOL = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


def layer(dtype, **linear):
    """A KDA layer of 5 heads, K = 12 and V = 20, with weights that matter."""
    model = small.model(dtype, small.config(linear=linear))
    return next(x for x in model.modules() if isinstance(x, KDA)).requires_grad_(False)


def run(made, x, lens):
    """(output, memory, window) from a memory and a window that are not empty."""
    generator = torch.Generator().manual_seed(1)
    cache = made.init_cache(len(lens) if lens else len(x), x)
    for name in ("state", "window"):
        old = getattr(cache, name)
        new = torch.randn(old.shape, generator=generator).to(old.dtype)
        setattr(cache, name, new)
    return made(x, cache, lens), cache.state, cache.window


def agree(made, B, T, lens, dtype):
    generator = torch.Generator().manual_seed(T)
    x = torch.randn(B, T, 26, generator=generator).to(dtype)
    assert made._fuses(x, made.init_cache(1, x))
    found = run(made, x, lens)
    with choose.use("torch"):
        wanted = run(made, x, lens)
    for got, want, tol in zip(found, wanted, (TOL[dtype], 1e-5, 0), strict=True):
        assert got.dtype == want.dtype
        assert gap(got, want) <= tol


@pytest.mark.parametrize("dtype", TOL)
@pytest.mark.parametrize(("B", "T", "lens"), CASES)
def test_one_pass_is_the_composed_layer(poisoned, dtype, B, T, lens):
    agree(layer(dtype), B, T, lens, dtype)


@pytest.mark.parametrize("level", LEVELS)
def test_at_every_level(poisoned, level):
    with at_level(level):
        agree(layer(torch.float32), 1, 33, None, torch.float32)


def test_the_unbounded_gate(poisoned):
    made = layer(torch.float32)
    made.lower_bound = None
    agree(made, 2, 21, None, torch.float32)


def test_a_filter_of_one_token_has_no_window(poisoned):
    made = layer(torch.float32, short_conv_kernel_size=1)
    agree(made, 2, 21, None, torch.float32)


def test_a_rewind_training_and_autocast_take_the_composed_layer():
    made = layer(torch.float32)
    x = torch.randn(1, 4, 26)
    assert made._fuses(x, made.init_cache(1, x))
    assert not made._fuses(x, made.init_cache(1, x, keep=2))
    assert not made._fuses(x.requires_grad_(), made.init_cache(1, x))
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        assert not made._fuses(x, made.init_cache(1, x))
    with choose.use("torch"), torch.no_grad():
        assert not made._fuses(x, made.init_cache(1, x))


def test_threads_change_no_bit():
    made, x = layer(torch.float32), torch.randn(2, 300, 26)
    try:
        found = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            cache = made.init_cache(2, x)
            given = made._fused(x, cache, None)
            found.append((given, cache.state, cache.window))
    finally:
        torch.set_num_threads(1)
    # The projections are torch's, whose rounding may follow the number of threads.
    assert all(gap(a, b) < 1e-6 for a, b in zip(*found, strict=True))
