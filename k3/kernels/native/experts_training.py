"""Grouped dense experts with their gradients: one loop over the experts in use."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from k3.kernels import mxfp8
from k3.kernels.native import situ


def combine(
    z: Float[Tensor, "T L"],
    index: Int[Tensor, "T k"],
    weights: Float[Tensor, "T k"],
    stacks: dict[str, Tensor],
    caps: tuple[float, float],
    *,
    narrow: bool = False,
) -> Float[Tensor, "T L"]:
    """Return kernels.moe.combine in fp32, so that autograd sees one operation.

    Gradients reach z, the weights and the stacks w1, w2, w3, of the dtype of z. With
    `narrow` what w2 reads is rounded to MXFP8, straight through for the gradient.
    Matches: kernels.moe.combine over model.experts.Experts.
    """
    stack = (stacks["w1"], stacks["w2"], stacks["w3"])
    return _Combine.apply(z, weights, *stack, index, caps, narrow)


class _Combine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, weights: Tensor, *rest: Any) -> Tensor:
        w1, w2, w3, index, caps, narrow = rest
        expert, order = torch.sort(index.flatten(), stable=True)
        token = order // index.shape[1]
        groups = list(_groups(expert, len(w1)))
        rows, scale = z.index_select(0, token), weights.flatten()[order, None]
        gate, up = (rows.new_empty(len(rows), w1.shape[1]) for _ in range(2))
        hidden, y = torch.empty_like(gate), torch.empty_like(rows)
        for e, here in groups:
            torch.mm(rows[here], w1[e].T, out=gate[here])
            torch.mm(rows[here], w3[e].T, out=up[here])
        situ.run(gate, up, caps[0], caps[1], hidden)
        hidden = mxfp8.rounded(hidden) if narrow else hidden
        for e, here in groups:
            torch.mm(hidden[here], w2[e].T, out=y[here])
        ctx.save_for_backward(
            rows, gate, up, hidden, y, token, order, scale, w1, w2, w3
        )
        ctx.rest = groups, caps, index.shape
        out = torch.zeros(z.shape, dtype=torch.float32)
        return out.index_add_(0, token, y * scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        rows, gate, up, hidden, y, token, order, scale, w1, w2, w3 = ctx.saved_tensors
        groups, caps, chosen = ctx.rest
        each = dout.index_select(0, token)
        dweights = torch.empty_like(scale[:, 0])
        dweights[order] = (each * y).sum(-1)
        dy, dhidden = (each * scale).to(rows.dtype), torch.empty_like(hidden)
        dw1, dw2, dw3 = (_like(w, groups) for w in (w1, w2, w3))
        for e, here in groups:
            torch.mm(dy[here], w2[e], out=dhidden[here])
            torch.mm(dy[here].T, hidden[here], out=dw2[e])
        dgate, dup = situ.gradients(dhidden, gate, up, caps[0], caps[1])
        drows = torch.empty_like(rows)
        for e, here in groups:
            torch.mm(dgate[here].T, rows[here], out=dw1[e])
            torch.mm(dup[here].T, rows[here], out=dw3[e])
            torch.mm(dgate[here], w1[e], out=drows[here])
            drows[here].addmm_(dup[here], w3[e])
        dz = torch.zeros(chosen[0], rows.shape[1], dtype=torch.float32)
        dz = dz.index_add_(0, token, drows.float()).to(rows.dtype)
        return dz, dweights.view(chosen), dw1, dw2, dw3, None, None, None


def _groups(expert: Tensor, num_experts: int) -> Iterator[tuple[int, slice]]:
    """Each expert in use and where its rows are, by rising number."""
    stop = 0
    counts = torch.bincount(expert, minlength=num_experts).tolist()
    for e, count in enumerate(counts):
        start, stop = stop, stop + count
        if count:
            yield e, slice(start, stop)


def _like(w: Tensor, groups: list[tuple[int, slice]]) -> Tensor:
    """Room for a stack's gradient, zero for the experts that are not in use."""
    room = torch.empty_like(w)
    used = {e for e, _ in groups}
    for e in range(len(w)):
        if e not in used:
            room[e].zero_()
    return room
