"""MXFP4: 4-bit values in groups of 32 that share one power-of-two scale byte.

Byte j of a row holds value 2j in its low nibble and 2j+1 in its high one. A nibble
is a sign bit and an index into E2M1; a scale byte e means 2^(e-127), 255 means NaN.
"""

from functools import cache

import torch
from jaxtyping import Float, Shaped, UInt8
from torch import Tensor

from k3.errors import ShapeError
from k3.kernels.choose import FLOATS, native
from k3.kernels.native import mx as compiled

GROUP = 32
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
RULES = ("floor", "ceil")
DTYPES = (torch.bfloat16, torch.float32, torch.float64)


def decode(
    packed: Shaped[Tensor, "*rows bytes"],
    scale: Shaped[Tensor, "*scale_rows groups"],
    dtype: torch.dtype,
    *,
    out: Shaped[Tensor, "*rows values"] | None = None,
) -> Float[Tensor, "*rows values"]:
    """The values of an MXFP4 tensor, [... I/2] and [... I/32] to [... I].

    Exact in every offered dtype, but for 6 * 2^127, which is infinite below float64.
    `out`, contiguous, is filled and returned: fresh pages cost more than decoding.
    Matches: ml_dtypes float4_e2m1fn times float8_e8m0fnu, bit for bit.
    Cost: one table read for 4 values (bfloat16) or 2, and one multiplication.
    Raises: ShapeError for another group size, scale dtype or result dtype.
    """
    _check_layout(packed, scale, dtype)
    shape = (*packed.shape[:-1], 2 * packed.shape[-1])
    if out is None:
        out = torch.empty(shape, dtype=dtype, device=packed.device)
    _check_out(out, shape, dtype)
    table, index = _words(dtype, packed.device), packed.contiguous().view(-1)
    if dtype is torch.bfloat16:
        index = index.view(torch.int16).int().bitwise_and_(0xFFFF)
    words = out.view(-1).view(table.dtype)
    torch.index_select(table, 0, index.int(), out=words)
    factors = _scales(dtype, packed.device).index_select(0, scale.reshape(-1).int())
    out.view(-1, GROUP).mul_(factors.unsqueeze(-1))
    return out


def encode(
    x: Float[Tensor, "*rows values"], rule: str = "floor"
) -> tuple[UInt8[Tensor, "*rows bytes"], UInt8[Tensor, "*rows groups"]]:
    """(packed, scale) of the nearest MXFP4 values, ties to the even code.

    "floor": the scale of the compressed-tensors encoder, 2^(floor(log2 P) - 2) with P
    the group's largest magnitude rounded up to a power of two from 1.75 * 2^k on;
    magnitudes in (6s, 7s) saturate at 6s. "ceil": the least scale with |x| <= 6s.
    A group of zeros gets scale byte 0. Packing decoded values again loses nothing.
    """
    _check_values(x, rule)
    if native(x, dtypes=FLOATS):
        packed, scale, finite = compiled.encode(x.detach().float(), ceil=rule == "ceil")
        _check_finite(finite)
        return packed, scale
    wide = x.detach() if x.dtype is torch.float64 else x.detach().float()
    groups = wide.unflatten(-1, (x.shape[-1] // GROUP, GROUP))
    scale = _group_scale(groups, rule)
    factors = _scales(groups.dtype, x.device)[scale.int()]
    codes = nibbles(groups / factors.unsqueeze(-1)).flatten(-2)
    # Two codes read as one integer: the second, eight bits up, moves down by four.
    pairs = codes.view(torch.int16)
    return (pairs | pairs >> 4).to(torch.uint8), scale


def rounded(
    x: Float[Tensor, "*rows values"], rule: str = "floor"
) -> Float[Tensor, "*rows values"]:
    """The values that MXFP4 keeps of x, in its dtype: decode(*encode(x, rule))."""
    _check_values(x, rule)
    if native(x, dtypes=(torch.float32,)):
        out, finite = compiled.rounded(x.detach(), ceil=rule == "ceil")
        _check_finite(finite)
        return out
    return decode(*encode(x, rule), x.dtype)


def _check_values(x: Tensor, rule: str) -> None:
    if rule not in RULES:
        raise ShapeError(f"an MXFP4 rule is one of {RULES}: got {rule!r}")
    if x.shape[-1] % GROUP:
        raise ShapeError(
            f"MXFP4 packs rows of a multiple of {GROUP} values: got {x.shape[-1]}; "
            "pad the row or keep the tensor dense"
        )


def _check_finite(finite: bool) -> None:
    if not finite:
        raise ShapeError("MXFP4 packs finite values: got inf or NaN; clean the tensor")


def _group_scale(groups: Tensor, rule: str) -> Tensor:
    """Return the scale byte [...] of each group [... 32]."""
    amax = groups.abs().amax(-1)
    _check_finite(bool(amax.isfinite().all()))
    # amax = mantissa * 2^exponent with mantissa in [1/2, 1).
    mantissa, exponent = torch.frexp(amax)
    # 7/8 here is 1.75 in [1, 2); 3/4 is 6 = 0.75 * 2^3.
    up = mantissa >= 0.875 if rule == "floor" else mantissa > 0.75
    byte = 127 + exponent - 3 + up.int()
    byte = torch.where(amax == 0, 0, byte)
    return byte.clamp(0, 254).to(torch.uint8)


def nibbles(y: Tensor) -> Tensor:
    """The 4-bit codes of scaled values, nearest with ties to the even code."""
    # Codes step by 1/2 below 2, by 1 below 4, by 2 above: the least of three is right.
    size = y.abs()
    codes = torch.round(2 * size)
    torch.minimum(codes, torch.round(size).add_(2), out=codes)
    torch.minimum(codes, torch.round(size.div_(2)).add_(4), out=codes)
    sign = torch.signbit(y).to(torch.uint8).mul_(8)
    return codes.clamp_(max=7).to(torch.uint8).bitwise_or_(sign)


@cache
def _words(dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the values of every byte (bfloat16: byte pair), one integer per entry."""
    nibble = torch.tensor(E2M1 + tuple(-value for value in E2M1), dtype=dtype)
    byte = torch.arange(256)
    values = torch.stack([nibble[byte & 15], nibble[byte >> 4]], -1)
    if dtype is torch.bfloat16:
        pair = torch.arange(65536)
        values = torch.cat([values[pair & 255], values[pair >> 8]], -1)
    word = torch.complex128 if dtype is torch.float64 else torch.int64
    return values.view(word).view(-1).to(device)


@cache
def _scales(dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the value of every scale byte; 2^-127 is subnormal but not zero."""
    exponent = torch.arange(256, dtype=torch.float64) - 127
    scales = torch.pow(2.0, exponent)
    scales[255] = torch.nan
    return scales.to(dtype).to(device)


def _check_layout(packed: Tensor, scale: Tensor, dtype: torch.dtype) -> None:
    """Refuse wrong dtypes and every group size but 32."""
    if dtype not in DTYPES:
        raise ShapeError(f"MXFP4 decodes to one of {DTYPES}: got {dtype}")
    for name, tensor in (("packed", packed), ("scale", scale)):
        if tensor.dtype is not torch.uint8:
            raise ShapeError(
                f"MXFP4 {name} is stored as uint8: got {tensor.dtype}; "
                "read the bytes of the file, not converted values"
            )
    want = (*packed.shape[:-1], packed.shape[-1] // (GROUP // 2))
    if packed.shape[-1] % (GROUP // 2) or tuple(scale.shape) != want:
        raise ShapeError(
            f"MXFP4 has one scale byte for {GROUP} values: packed "
            f"{tuple(packed.shape)} needs scale {want}, got {tuple(scale.shape)}; "
            "groups of 16 are another format"
        )


def _check_out(out: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Refuse an output buffer that cannot hold the values in place."""
    if tuple(out.shape) != shape or out.dtype != dtype or not out.is_contiguous():
        raise ShapeError(
            f"out must be contiguous {dtype} {shape}: got "
            f"{out.dtype} {tuple(out.shape)}"
        )
