"""Microscaling formats: MXFP4 weights and MXFP8 activations, by 32s.

Every value here is rational, so decoding, encoding and error bounds run exactly.
Encoding looks at values to choose codes; bounds do not.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Literal

from k3.spec import ops
from k3.spec.ops import Array

GROUP = 32
E2M1 = tuple(Fraction(n, 2) for n in (0, 1, 2, 3, 4, 6, 8, 12))
E2M1_MAX = 6
Rule = Literal["floor", "ceil"]


@dataclass(frozen=True, slots=True)
class Fp8:
    """An 8-bit float: mantissa bits, bias, and its largest finite value."""

    mantissa: int
    bias: int
    largest: int


E4M3 = Fp8(3, 7, 448)
E5M2 = Fp8(2, 15, 57344)


def e8m0(code: int) -> Fraction:
    """The scale of byte code in 0..254: 2^(code - 127). 255 is NaN and refused."""
    assert 0 <= code <= 254, code
    return Fraction(2) ** (code - 127)


def e2m1(code: int) -> Fraction:
    """The value of a nibble: bit 3 sign, bits 0-2 into 0 .5 1 1.5 2 3 4 6."""
    value = E2M1[code & 7]
    return -value if code & 8 else value


def fp8(form: Fp8, code: int) -> Fraction | None:
    """The value of a byte, or None for the NaN and infinity codes of the format."""
    sign = -1 if code & 128 else 1
    exponent, rest = (code & 127) >> form.mantissa, code & ((1 << form.mantissa) - 1)
    fraction = Fraction(rest, 1 << form.mantissa)
    if exponent == 0:
        return sign * fraction * Fraction(2) ** (1 - form.bias)
    value = (1 + fraction) * Fraction(2) ** (exponent - form.bias)
    return sign * value if value <= form.largest else None


def nearest(x: Array, values: Sequence[Fraction]) -> int:
    """The index of the value nearest to x >= 0, ties to the even index, saturating.

    values rise from 0. Beyond the last one x takes the last.
    """
    y = ops.key(x)
    above = bisect_left(values, y)
    if above in (0, len(values)):
        return min(above, len(values) - 1)
    below = above - 1
    middle = (values[below] + values[above]) / 2
    if y == middle:
        return below if below % 2 == 0 else above
    return above if y > middle else below


@cache
def positive(form: Fp8) -> tuple[Fraction, ...]:
    """The finite values of the codes 0, 1, ... without sign, rising."""
    return tuple(v for v in (fp8(form, c) for c in range(128)) if v is not None)


def encode_e2m1(x: Array) -> int:
    """The nibble nearest to x, ties to the even code, saturating at 6.

    .25 -> 0, .75 -> 1, 1.25 -> 1, 1.75 -> 2, 2.5 -> 2, 3.5 -> 4, 5 -> 4.
    """
    code = nearest(abs(x), E2M1)
    return code + 8 if ops.key(x) < 0 else code


def encode_fp8(form: Fp8, x: Array) -> int:
    """The finite byte nearest to x, ties to the even code, saturating."""
    code = nearest(abs(x), positive(form))
    return code + 128 if ops.key(x) < 0 else code


def floor_log2(x: Fraction) -> int:
    """The largest e with 2^e <= x, for x > 0."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def _amax(values: Sequence[Array]) -> Fraction:
    return max(Fraction(ops.key(abs(x))) for x in values)


def scale_code(values: Sequence[Array], rule: Rule = "floor") -> int:
    """The scale byte of a group for MXFP4. A group of zeros gets byte 0.

    "floor": 127 + floor(log2 P) - 2 where P is the largest magnitude, rounded up to a
    power of two from 1.75 2^k on (compressed-tensors); magnitudes up to 7s saturate.
    "ceil": the least scale s with |x| <= 6s, under which no element saturates.
    """
    amax = _amax(values)
    if amax == 0:
        return 0
    e = floor_log2(amax)
    if rule == "floor":
        e = e + 1 if amax >= Fraction(7, 4) * Fraction(2) ** e else e
        code = 127 + e - 2
    else:
        code = 127 + least_exponent(amax, E2M1_MAX)
    return min(max(code, 0), 254)


def least_exponent(amax: Fraction, largest: int) -> int:
    """The least e with amax <= largest 2^e, for amax > 0."""
    e = floor_log2(amax / largest)
    return e if amax <= largest * Fraction(2) ** e else e + 1


@dataclass(frozen=True, slots=True)
class Block:
    """32 codes that share one scale byte."""

    scale: int
    codes: tuple[int, ...]


def encode_block(values: Sequence[Array], rule: Rule = "floor") -> Block:
    """MXFP4: 32 values to a block, |error| <= scale where |x| <= 6 scale."""
    scale = scale_code(values, rule)
    s = e8m0(scale)
    return Block(scale, tuple(encode_e2m1(x / ops.lift(x, s)) for x in values))


def decode_block(block: Block) -> list[Fraction]:
    """MXFP4: the values scale * element of a block."""
    return [e8m0(block.scale) * e2m1(code) for code in block.codes]


def dot(x: Block, y: Block) -> Fraction:
    """MXFP4: the dot product of two blocks, sum of (s_x a_i)(s_y b_i)."""
    pairs = zip(decode_block(x), decode_block(y), strict=True)
    return sum((a * b for a, b in pairs), Fraction(0))


def factored_dot(x: Block, y: Block) -> Fraction:
    """MXFP4: the same with the scales outside, s_x s_y sum a_i b_i."""
    pairs = zip(x.codes, y.codes, strict=True)
    inner = sum((e2m1(a) * e2m1(b) for a, b in pairs), Fraction(0))
    return e8m0(x.scale) * e8m0(y.scale) * inner


def pack(codes: Sequence[int]) -> list[int]:
    """Nibbles to bytes: element 2j low, element 2j + 1 high."""
    pairs = zip(codes[::2], codes[1::2], strict=True)
    return [low | high << 4 for low, high in pairs]


def unpack(packed: Sequence[int]) -> list[int]:
    """Bytes to nibbles, low first."""
    return [nibble for byte in packed for nibble in (byte & 15, byte >> 4)]


def decode_row(packed: Sequence[int], scales: Sequence[int]) -> list[Fraction]:
    """A stored row: packed bytes [I/2] and scale bytes [I/32] to values [I]."""
    codes = unpack(packed)
    return [e8m0(scales[i // GROUP]) * e2m1(code) for i, code in enumerate(codes)]
