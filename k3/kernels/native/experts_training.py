"""Grouped dense experts with their gradients: one loop over the experts in use."""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from k3.kernels import mxfp8
from k3.kernels.native import situ
from k3.kernels.native.operation import Floats, Ints, Operation, blank


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
    given = [z, index, weights, stacks["w1"], stacks["w2"], stacks["w3"]]
    return OPERATION(given, (int(narrow),), caps, record=True)[0]


def _forward(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    z, index, weights, w1, w2, w3 = given
    expert, order = torch.sort(index.flatten(), stable=True)
    token = order // index.shape[1]
    groups = list(_groups(expert, len(w1)))
    rows, scale = z.index_select(0, token), weights.flatten()[order, None]
    gate, up = (rows.new_empty(len(rows), w1.shape[1]) for _ in range(2))
    hidden, y = torch.empty_like(gate), torch.empty_like(rows)
    for e, here in groups:
        torch.mm(rows[here], w1[e].T, out=gate[here])
        torch.mm(rows[here], w3[e].T, out=up[here])
    situ.run(gate, up, floats[0], floats[1], hidden)
    hidden = mxfp8.rounded(hidden) if ints[0] else hidden
    for e, here in groups:
        torch.mm(hidden[here], w2[e].T, out=y[here])
    out = torch.zeros(z.shape, dtype=torch.float32)
    out.index_add_(0, token, y * scale)
    return [out, order, rows, gate, up, hidden, y]


def _backward(
    saved: list[Tensor], grads: list[Tensor], ints: Ints, floats: Floats
) -> list[Tensor]:
    z, index, weights, w1, w2, w3, order, rows, gate, up, hidden, y = saved
    groups, token = list(_groups(index.flatten(), len(w1))), order // index.shape[1]
    each = grads[0].index_select(0, token)
    dweights = weights.new_empty(weights.numel())
    dweights[order] = (each * y).sum(-1)
    dy = (each * weights.flatten()[order, None]).to(rows.dtype)
    dhidden, dw1, dw2, dw3 = blank(hidden), *(_like(w, groups) for w in (w1, w2, w3))
    for e, here in groups:
        torch.mm(dy[here], w2[e], out=dhidden[here])
        torch.mm(dy[here].T, hidden[here], out=dw2[e])
    dgate, dup = situ.gradients(dhidden, gate, up, floats[0], floats[1])
    drows = torch.empty_like(rows)
    for e, here in groups:
        torch.mm(dgate[here].T, rows[here], out=dw1[e])
        torch.mm(dup[here].T, rows[here], out=dw3[e])
        torch.mm(dgate[here], w1[e], out=drows[here])
        drows[here].addmm_(dup[here], w3[e])
    dz = torch.zeros(z.shape, dtype=torch.float32)
    dz = dz.index_add_(0, token, drows.float()).to(rows.dtype)
    return [dz, dweights.view(weights.shape), dw1, dw2, dw3]


def _blank(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    """What `_forward` returns, without values."""
    z, index, _, w1 = given[:4]
    L, F, n = z.shape[1], w1.shape[1], index.numel()
    out = z.new_empty(z.shape, dtype=torch.float32)
    narrow = [z.new_empty(n, width) for width in (L, F, F, F, L)]
    return [out, index.new_empty(n), *narrow]


OPERATION = Operation("experts_training", _forward, _blank, back=_backward, kept=6)


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
    room = blank(w)
    used = {e for e, _ in groups}
    for e in range(len(w)):
        if e not in used:
            room[e].zero_()
    return room
