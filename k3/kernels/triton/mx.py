"""Products with MXFP4 weights in Triton, decoded in registers and never stored."""

import triton
import triton.language as tl
from jaxtyping import Float, UInt8
from torch import Tensor

from k3.kernels.triton.jit import triton_jit, whole


def product(
    x: Float[Tensor, "B columns"],
    weight: UInt8[Tensor, "rows bytes"],
    scale: UInt8[Tensor, "rows groups"],
) -> Float[Tensor, "B rows"]:
    """Return x W^T in the dtype of x, summed in fp32.

    Matches: torch.nn.functional.linear of the decoded weight.
    """
    x, weight, scale = x.contiguous(), weight.contiguous(), scale.contiguous()
    (B, columns), rows = x.shape, weight.shape[0]
    out = x.new_empty(B, rows)
    tile = {"BLOCK_B": 16 if B <= 16 else 64, "BLOCK_N": 64, "BLOCK_K": 64}
    if out.numel():
        grid = triton.cdiv(B, tile["BLOCK_B"]), triton.cdiv(rows, tile["BLOCK_N"])
        forward[grid](x, weight, scale, out, B, rows, columns, WHOLE=whole(x), **tile)
    return out


@triton_jit
def powers(scale):
    """2^(byte - 127) of scale bytes; 2^-127 is below normal numbers, 255 is NaN."""
    byte = scale.to(tl.int32)
    bits = tl.where(byte == 0, 1 << 22, byte << 23)
    bits = tl.where(byte == 255, 0x7FC00000, bits)
    return bits.to(tl.float32, bitcast=True)


@triton_jit
def numbers(code):
    """E2M1 of 4-bit codes: sign, two bits of exponent, one of mantissa."""
    size = code & 7
    bits = (((size >> 1) + 126) << 23) | ((size & 1) << 22)
    value = bits.to(tl.float32, bitcast=True)
    value = tl.where(size < 2, size.to(tl.float32) * 0.5, value)
    return tl.where(code > 7, -value, value)


@triton_jit
def decoded(
    weight, scale, n, real, start, columns, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """fp32 values [BLOCK_N BLOCK_K] of rows n from column `start` on."""
    pair = start // 2 + tl.arange(0, BLOCK_K // 2)
    group = start // 32 + tl.arange(0, BLOCK_K // 32)
    at = n[:, None] * (columns // 2) + pair[None, :]
    there = real[:, None] & (pair < columns // 2)[None, :]
    byte = tl.load(weight + at, there, 0).to(tl.int32)
    at = n[:, None] * (columns // 32) + group[None, :]
    there = real[:, None] & (group < columns // 32)[None, :]
    factor = powers(tl.load(scale + at, there, 127))
    value = tl.join(numbers(byte & 15), numbers(byte >> 4))
    value = tl.reshape(value, [BLOCK_N, BLOCK_K // 32, 32])
    return tl.reshape(value * factor[:, :, None], [BLOCK_N, BLOCK_K])


@triton_jit
def accumulate(total, x, w, WHOLE: tl.constexpr):
    """total + x w^T, in fp32, or of bf16 values."""
    if WHOLE:
        return tl.dot(
            x.to(tl.float32), tl.trans(w.to(tl.float32)), total, input_precision="ieee"
        )
    return tl.dot(x, tl.trans(w.to(x.dtype)), total)


@triton_jit
def forward(
    x, weight, scale, out, B, rows, columns, WHOLE: tl.constexpr,
    BLOCK_B: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One tile of the result."""
    b = tl.program_id(0).to(tl.int64) * BLOCK_B + tl.arange(0, BLOCK_B)
    n = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    total = tl.zeros([BLOCK_B, BLOCK_N], tl.float32)
    for start in range(0, columns, BLOCK_K):
        real = (b < B)[:, None] & (start + k < columns)[None, :]
        rows_of_x = tl.load(x + b[:, None] * columns + start + k[None, :], real, 0.0)
        w = decoded(
            weight, scale, n, n < rows, start, columns, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K
        )
        total = accumulate(total, rows_of_x, w, WHOLE=WHOLE)
    at = b[:, None] * rows + n[None, :]
    real = (b < B)[:, None] & (n < rows)[None, :]
    tl.store(out + at, total.to(out.dtype.element_ty), real)
