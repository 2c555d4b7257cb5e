"""All chosen experts of some rows in Triton: rows grouped by expert, no host wait."""

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from k3.kernels.triton import mx
from k3.kernels.triton import situ as caps_of
from k3.kernels.triton.jit import triton_jit, whole

TILE = {"BLOCK_N": 64, "BLOCK_K": 64}


def combine(
    z: Float[Tensor, "T L"],
    index: Int[Tensor, "T k"],
    weights: Float[Tensor, "T k"],
    stacks: dict[str, Tensor],
    caps: tuple[float, float],
) -> Float[Tensor, "T L"]:
    """Sum of weight * w2 SiTU(w1 z, w3 z) over the chosen experts, in fp32.

    `stacks` are w1, w2, w3 in the dtype of z, or their MXFP4 bytes with the scales
    s1, s2, s3; `caps` is SiTU's beta and linear beta. The same bits every time.
    Matches: kernels.moe.combine over model.experts.Experts.
    """
    (T, L), k = z.shape, index.shape[1]
    F = stacks["w1"].shape[1]
    z, weights = z.contiguous(), weights.contiguous()
    if not index.numel():
        return z.new_zeros(T, L, dtype=torch.float32)
    block = 16 if index.numel() < 16 * len(stacks["w1"]) else 64
    order, first, stop, expert = groups(index, len(stacks["w1"]), block)
    held = {name: stack.contiguous() for name, stack in stacks.items()}
    s1, s2, s3 = (held.get(f"s{i}", held[f"w{i}"]) for i in (1, 2, 3))
    how = {"PACKED": "s1" in held, "WHOLE": whole(z), "BLOCK_B": block, **TILE}
    hidden, y = z.new_empty(T * k, F), z.new_empty(T * k, L, dtype=torch.float32)
    enter[(len(expert), triton.cdiv(F, TILE["BLOCK_N"]))](
        *(z, held["w1"], s1, held["w3"], s3, hidden, order, first, stop, expert),
        *(k, L, F, *caps),
        **how,
    )
    leave[(len(expert), triton.cdiv(L, TILE["BLOCK_N"]))](
        *(hidden, held["w2"], s2, weights, y, order, first, stop, expert, L, F),
        **how,
    )
    return y.view(T, k, L).sum(1)


def groups(
    index: Int[Tensor, "T k"], num_experts: int, block: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(assignments by rising expert, each tile's first, its expert's end, its expert).

    There are as many tiles as there may be; one that is not needed has no rows.
    """
    flat = index.flatten()
    order = torch.argsort(flat, stable=True)
    counts = torch.zeros(num_experts, dtype=torch.int64, device=flat.device)
    counts.scatter_add_(0, flat, torch.ones_like(flat))
    ends, tiles = counts.cumsum(0), ((counts + block - 1) // block).cumsum(0)
    most = len(flat) // block + min(num_experts, len(flat))
    tile = torch.arange(most, device=flat.device)
    expert = torch.searchsorted(tiles, tile, right=True).clamp_(max=num_experts - 1)
    before = tile - (tiles[expert] - (counts[expert] + block - 1) // block)
    first = ends[expert] - counts[expert] + before * block
    return order, first, ends[expert], expert


@triton_jit
def matrix(
    weight, scale, e, n, rows, start, columns, PACKED: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Rows n of expert e's matrix from column `start` on."""
    row, real = e * rows + n, n < rows
    if PACKED:
        tile = mx.decoded(
            weight, scale, row, real, start, columns, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K
        )
    else:
        k = start + tl.arange(0, BLOCK_K)
        there = real[:, None] & (k < columns)[None, :]
        tile = tl.load(weight + row[:, None] * columns + k[None, :], there, 0.0)
    return tile


@triton_jit
def enter(
    z, w1, s1, w3, s3, hidden, order, first, stop, expert, k, L, F, beta, linear,
    PACKED: tl.constexpr, WHOLE: tl.constexpr, BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """SiTU(w1 z, w3 z) of one tile: rows of one expert by some of its channels."""
    e, end = tl.load(expert + tl.program_id(0)), tl.load(stop + tl.program_id(0))
    begin = tl.load(first + tl.program_id(0))
    if begin >= end:
        return
    b = begin + tl.arange(0, BLOCK_B)
    n = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    token = tl.load(order + b, b < end, 0) // k
    gate = tl.zeros([BLOCK_B, BLOCK_N], tl.float32)
    up = tl.zeros([BLOCK_B, BLOCK_N], tl.float32)
    for start in range(0, L, BLOCK_K):
        c = start + tl.arange(0, BLOCK_K)
        real = (b < end)[:, None] & (c < L)[None, :]
        x = tl.load(z + token[:, None] * L + c[None, :], real, 0.0)
        w = matrix(
            w1, s1, e, n, F, start, L, PACKED=PACKED, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K
        )
        gate = mx.accumulate(gate, x, w, WHOLE=WHOLE)
        w = matrix(
            w3, s3, e, n, F, start, L, PACKED=PACKED, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K
        )
        up = mx.accumulate(up, x, w, WHOLE=WHOLE)
    # What a product of the trunk's dtype would leave of them.
    gate = gate.to(hidden.dtype.element_ty).to(tl.float32)
    up = up.to(hidden.dtype.element_ty).to(tl.float32)
    real = (b < end)[:, None] & (n < F)[None, :]
    made = caps_of.capped(gate, up, beta, linear)
    at = b[:, None] * F + n[None, :]
    tl.store(hidden + at, made.to(hidden.dtype.element_ty), real)


@triton_jit
def leave(
    hidden, w2, s2, weights, y, order, first, stop, expert, L, F,
    PACKED: tl.constexpr, WHOLE: tl.constexpr, BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """weight * w2 hidden of one tile, to where its assignments stand."""
    e, end = tl.load(expert + tl.program_id(0)), tl.load(stop + tl.program_id(0))
    begin = tl.load(first + tl.program_id(0))
    if begin >= end:
        return
    b = begin + tl.arange(0, BLOCK_B)
    n = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_B, BLOCK_N], tl.float32)
    for start in range(0, F, BLOCK_K):
        c = start + tl.arange(0, BLOCK_K)
        real = (b < end)[:, None] & (c < F)[None, :]
        x = tl.load(hidden + b[:, None] * F + c[None, :], real, 0.0)
        w = matrix(
            w2, s2, e, n, L, start, F, PACKED=PACKED, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K
        )
        total = mx.accumulate(total, x, w, WHOLE=WHOLE)
    to = tl.load(order + b, b < end, 0)
    factor = tl.load(weights + to, b < end, 0.0)
    # What a product of the trunk's dtype would leave of it.
    total = total.to(hidden.dtype.element_ty).to(tl.float32) * factor[:, None]
    real = (b < end)[:, None] & (n < L)[None, :]
    tl.store(y + to[:, None] * L + n[None, :], total, real)
