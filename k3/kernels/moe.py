"""Routing to experts and the grouped product over the chosen ones."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from k3.kernels import precision
from k3.kernels.choose import SINGLE, operation, packs
from k3.kernels.native import gemm
from k3.kernels.native import top_k as native

SAME_ROWS = 4
"""From so many rows on, a row's product has the same bits whatever the others are."""

CACHE_LINE_BYTES = 64


def scores(
    x: Float[Tensor, "T D"], weight: Float[Tensor, "E D"]
) -> Float[Tensor, "T E"]:
    """Eq. 13: router scores sigmoid(x W^T), product and sigmoid in fp32 or wider."""
    rows = precision.wide(x)
    if packs(rows, weight):
        return torch.sigmoid(gemm.products(rows, [weight])[0])
    return torch.sigmoid(rows @ precision.wide(weight).T)


def top_k(values: Float[Tensor, "T E"], k: int) -> Int[Tensor, "T k"]:
    """Indices of the k largest of each row, largest first, ties to the lower index."""
    if _native(values, k):
        return native.top_k(values, k)
    if torch.compiler.is_compiling():
        # What is traced cannot depend on a value.
        return torch.sort(values, stable=True, dim=-1, descending=True).indices[:, :k]
    more = min(k + 1, values.shape[-1])
    best, index = torch.topk(values, more, -1)
    # torch.topk leaves the order of ties open: only then pay for a stable sort.
    if bool((best[:, 1:] == best[:, :-1]).any()):
        index = torch.sort(values, stable=True, dim=-1, descending=True).indices
    return index[:, :k]


def _native(values: Tensor, k: int) -> bool:
    fits = 0 < k <= min(native.MOST, values.shape[-1])
    return fits and operation(values, dtypes=SINGLE)


def route(
    x: Float[Tensor, "T D"],
    weight: Float[Tensor, "E D"],
    bias: Float[Tensor, " E"],
    k: int,
    scaling: float,
) -> tuple[Int[Tensor, "T k"], Float[Tensor, "T k"]]:
    """Eq. 13: the k experts with the largest score + bias, and their weights.

    The bias takes part in the choice only: weights are the chosen scores over
    their sum, times `scaling`.
    Matches: spec.moe.route.
    """
    return choose(scores(x, weight), bias, k, scaling)


def choose(
    s: Float[Tensor, "T E"], bias: Float[Tensor, " E"], k: int, scaling: float
) -> tuple[Int[Tensor, "T k"], Float[Tensor, "T k"]]:
    """Eq. 13 after the scores: the chosen experts and their weights, as `route`."""
    index = top_k(s.detach() + bias, k)
    chosen = s.gather(-1, index)
    return index, chosen / (chosen.sum(-1, keepdim=True) + 1e-20) * scaling


def combine(
    x: Float[Tensor, "T L"],
    index: Int[Tensor, "T k"],
    weights: Float[Tensor, "T k"],
    expert: Callable[[int, Tensor], Tensor],
) -> Float[Tensor, "T L"]:
    """Eq. 11: sum over chosen experts of weight * expert(x), in fp32 or wider.

    Assignments are sorted by expert, so each one that is used runs once over its
    rows, and the others cost nothing. `expert(e, rows)` is called in rising e.
    """
    num_tokens, k = index.shape
    out = torch.zeros_like(x, dtype=weights.dtype)
    if num_tokens == 1:
        order = torch.argsort(index[0])
        for e, w in zip(index[0][order].tolist(), weights[0][order], strict=True):
            # A weight without axes would take the dtype of a narrow expert.
            out = out + w * expert(e, x).to(out.dtype)
        return out
    flat, order = torch.sort(index.flatten(), stable=True)
    token = order // k
    scale = weights.flatten()[order, None]
    used, counts = torch.unique_consecutive(flat, return_counts=True)
    parts = []
    groups = x.index_select(0, token).split(counts.tolist())
    for e, rows in zip(used.tolist(), groups, strict=True):
        parts.append(expert(e, _alone(rows))[: len(rows)])
    if not parts:
        return out
    return out.index_add(0, token, torch.cat(parts) * scale)


def _alone(rows: Float[Tensor, "n L"]) -> Float[Tensor, "m L"]:
    """Rows of one expert, so that others' choices do not change their bits.

    A product of fewer than SAME_ROWS rows is summed in another order, and so may one
    be whose first row does not lie on a cache line.
    """
    if len(rows) < SAME_ROWS:
        return F.pad(rows, (0, 0, 0, SAME_ROWS - len(rows)))
    aligned = rows.shape[1] * rows.element_size() % CACHE_LINE_BYTES == 0
    return rows if aligned else rows.clone()
