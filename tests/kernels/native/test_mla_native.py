"""Attention of a prompt natively against float64 and PyTorch's form."""

import pytest
import torch
from small import gap

from k3.kernels import choose, mla

# B, T, S, H, nope, rope, V: one token, odd sizes, a context, several blocks of keys.
SHAPES = [
    *[(1, 1, 1, 1, 3, 2, 5), (2, 13, 13, 3, 7, 4, 9), (1, 30, 90, 2, 16, 8, 33)],
    *[(1, 5, 700, 2, 8, 0, 16), (1, 550, 1100, 1, 8, 8, 16)],
]
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 6e-3}
SCALE = 0.3


def draw(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype)


def inputs(B, T, S, H, nope, rope, V, dtype=torch.float32):
    """Queries, keys with values, and shared keys that end the rows of a cache."""
    q = draw(B, T, H, nope + rope, dtype=dtype).transpose(1, 2)
    row = draw(B, S, 11 + rope, seed=2, dtype=dtype)
    return q, draw(B, S, H, nope + V, seed=1, dtype=dtype), row[..., 11:]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
def test_attention_is_that_of_float64(poisoned, shape, dtype):
    given = inputs(*shape, dtype=dtype)
    got = mla.attend_heads(*given, SCALE)
    want = mla.attend_heads(*(x.double() for x in given), SCALE)
    assert (got.dtype, got.shape) == (dtype, want.shape)
    assert gap(got, want) < TOLERANCE[dtype]


def test_no_queries_and_no_sequences(poisoned):
    for shape in ((1, 0, 5, 2, 4, 2, 3), (0, 4, 4, 2, 4, 2, 3)):
        got = mla.attend_heads(*inputs(*shape), SCALE)
        assert got.shape == (shape[0], 2, shape[1], 3)


def test_the_same_bits_for_any_number_of_threads_and_in_a_batch():
    given = inputs(2, 150, 600, 1, 9, 3, 5)
    found, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(mla.attend_heads(*given, SCALE))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(found[0], other) for other in found)
    alone = mla.attend_heads(*(x[1:] for x in given), SCALE)
    assert torch.equal(alone, found[0][1:])


def test_scores_of_any_size(poisoned):
    q, kv, shared = inputs(1, 40, 40, 2, 7, 2, 8)
    for factor in (1e4, -1e4, 0.0):
        got = mla.attend_heads(q * factor, kv, shared, SCALE)
        want = mla.attend_heads(
            q.double() * factor, kv.double(), shared.double(), SCALE
        )
        assert gap(got, want) < 1e-5


def test_gradients_and_mixed_dtypes_are_pytorchs(monkeypatch):
    q, kv, shared = inputs(1, 5, 5, 2, 4, 2, 3)
    monkeypatch.setattr(mla.native, "attend", None)
    assert mla.attend_heads(q, kv.requires_grad_(), shared, SCALE).requires_grad
    with choose.use("torch"), torch.no_grad():
        assert mla.attend_heads(q, kv, shared, SCALE).shape == (1, 2, 5, 3)
