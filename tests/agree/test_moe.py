import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from readings import agree, tensor  # noqa: F401

from k3.kernels import moe as fast
from k3.spec import moe as spec


def test_route():
    x, weight, bias = torch.randn(9, 6), torch.randn(7, 6), torch.randn(7)
    scaling = 2.5
    index, _ = fast.route(x, weight, bias, 3, scaling)
    for t in range(9):
        chosen, _ = spec.route(spec.router(weight, x[t]), bias, 3, scaling=scaling)
        assert index[t].tolist() == chosen

    def by_token(x, weight):
        rows = [
            spec.route(spec.router(weight, x[t]), bias, 3, scaling=scaling)[1]
            for t in range(9)
        ]
        return torch.stack(rows)

    agree.same(
        lambda x, w: fast.route(x, w, bias, 3, scaling)[1], by_token, [x, weight]
    )


@settings(deadline=None)
@given(st.lists(st.integers(-2, 2), min_size=1, max_size=9), st.data())
def test_top_k_with_ties(values, data):
    k = data.draw(st.integers(1, len(values)))
    row = torch.tensor([values], dtype=torch.float64)
    assert fast.top_k(row, k)[0].tolist() == spec.top_k(row[0], k)


def test_combine():
    for T in (1, 5):
        x, experts = torch.randn(T, 4), torch.randn(6, 4, 4)
        weights = torch.rand(T, 2)
        index = torch.stack([torch.randperm(6)[:2] for _ in range(T)])

        def kernel(x, experts, weights, index=index):
            return fast.combine(x, index, weights, lambda e, rows: rows @ experts[e].T)

        def by_token(x, experts, weights, index=index):
            rows = [
                spec.mixture(p, [experts[e] @ row for e in chosen.tolist()])
                for p, row, chosen in zip(weights, x, index, strict=True)
            ]
            return torch.stack(rows)

        agree.same(kernel, by_token, [x, experts, weights])
