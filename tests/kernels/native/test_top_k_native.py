"""The k largest natively against a stable sort."""

import pytest
import torch

from k3.kernels import choose, moe
from k3.kernels.native import top_k


@pytest.fixture
def seen(monkeypatch):
    """Count the calls of the kernel."""
    calls, real = [], top_k.top_k
    monkeypatch.setattr(top_k, "top_k", lambda *a: (calls.append(1), real(*a))[1])
    return calls


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("shape", "k"),
    [((0, 8), 3), ((1, 1), 1), ((33, 32), 4), ((70, 896), 16), ((5, 100), 64)],
)
def test_the_largest_come_first_and_ties_go_to_the_lower_index(
    poisoned, seen, shape, k, threads
):
    generator = torch.Generator().manual_seed(0)
    # Few different values, so that most rows have ties, at the cut too.
    values = torch.randint(-9, 9, shape, generator=generator) / 4
    want = torch.sort(values, stable=True, dim=-1, descending=True).indices[:, :k]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        got = moe.top_k(values, k)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(got, want)
    assert seen


def test_zeros_of_both_signs_tie_and_nan_and_infinity_are_in_order(seen):
    nan, inf = float("nan"), float("inf")
    row = torch.tensor([[-0.0, 0.0, -inf, nan, inf, 1e-40, nan, -1.0]])
    want = [3, 6, 4, 5, 0, 1, 7, 2]
    for k in range(1, 9):
        assert moe.top_k(row, k).tolist() == [want[:k]]
    assert len(seen) == 8
    with choose.use("torch"):
        assert moe.top_k(row, 8).tolist() == [want]


def test_more_than_the_kernel_keeps_goes_to_pytorch(seen):
    values = torch.arange(200.0).expand(2, -1)
    assert moe.top_k(values, 65).tolist() == [list(range(199, 134, -1))] * 2
    assert not seen
