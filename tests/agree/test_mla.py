import pytest
import torch
from readings import agree, tensor  # noqa: F401

from k3.kernels import mla as fast
from k3.spec import mla as spec

H, n, r, V, R = 3, 4, 2, 7, 5
SCALE = (n + r) ** -0.5


def causal(form, q, W, latents, shared):
    """The spec's form for the last T of S tokens, [H T V]."""
    T, S = q.shape[1], len(latents)
    return torch.stack(
        [
            torch.stack(
                [
                    form(
                        q[h, t], W[h], latents[: S - T + t + 1], shared[: S - T + t + 1]
                    )
                    for t in range(T)
                ]
            )
            for h in range(H)
        ]
    )


def inputs(T, S):
    return [
        torch.randn(H, T, n + r),
        torch.randn(H, n + V, R),
        torch.randn(S, R),
        torch.randn(S, r),
    ]


@pytest.mark.parametrize(("T", "S"), [(1, 1), (1, 9), (5, 5), (3, 8)])
@pytest.mark.parametrize("workspace", [4, 8192])
def test_expanded(T, S, workspace):
    def kernel(q, W, latents, shared):
        content = torch.einsum("hnr,sr->hsn", W[:, :n], latents)
        keys = torch.cat([content, shared.expand(H, S, r)], -1)
        values = torch.einsum("hvr,sr->hsv", W[:, n:], latents)
        return fast.attend(q[None], keys[None], values[None], SCALE, workspace)[0]

    agree.same(kernel, lambda *x: causal(spec.expanded, *x), inputs(T, S))


@pytest.mark.parametrize(("T", "S"), [(1, 1), (1, 9), (3, 8)])
@pytest.mark.parametrize("paged", [True, False])
def test_absorbed(T, S, paged):
    def kernel(q, W, latents, shared):
        moved = torch.einsum("htn,hnr->htr", q[..., :n], W[:, :n])
        rows = torch.cat([latents, shared], -1)
        if paged:
            padded = torch.cat([rows, rows.new_full((12 - S, R + r), torch.nan)])
            pool = padded.view(3, 4, -1).flip(0)
            table = torch.tensor([[2, 1, 0]])
        else:
            pool, table = rows[None], None
        full = torch.cat([moved, q[..., n:]], -1)[None]
        seen = fast.absorbed(full, pool, table, (S,), latent_dim=R, scale=SCALE)[0]
        return torch.einsum("htr,hvr->htv", seen, W[:, n:])

    agree.same(kernel, lambda *x: causal(spec.absorbed, *x), inputs(T, S))
