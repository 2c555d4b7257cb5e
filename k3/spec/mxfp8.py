"""MXFP8 activations: a scale policy that never overflows, and its certificate.

The paper names MXFP8 but no format and no scale rule, and the release stores weights
only. Ours is the least scale under which the largest magnitude is representable.
"""

from collections.abc import Sequence
from fractions import Fraction

from k3.spec import mx, ops
from k3.spec.mx import Block, Fp8
from k3.spec.ops import Array


def scale_code(form: Fp8, values: Sequence[Array]) -> int:
    """The least byte with |x| <= largest 2^(code - 127), at least 0, for a group."""
    amax = max(Fraction(ops.key(abs(x))) for x in values)
    if amax == 0:
        return 0
    return min(max(127 + mx.least_exponent(amax, form.largest), 0), 254)


def encode_block(form: Fp8, values: Sequence[Array]) -> Block:
    """32 values to the nearest codes under the policy's scale."""
    scale = scale_code(form, values)
    s = mx.e8m0(scale)
    codes = tuple(mx.encode_fp8(form, x / ops.lift(x, s)) for x in values)
    return Block(scale, codes)


def decode_block(form: Fp8, block: Block) -> list[Fraction]:
    """The values scale * element of a block of finite codes."""
    values = [mx.fp8(form, code) for code in block.codes]
    assert None not in values, block
    return [mx.e8m0(block.scale) * value for value in values if value is not None]


def error_bound(form: Fp8, scale: int, x: Array) -> Array:
    """The certificate: |decoded - x| <= max(|x| 2^-(m+1), s 2^-(bias + m)).

    m mantissa bits; the first part is half a unit in the last place of a normal
    number, the second half a step of the subnormals.
    """
    relative = abs(x) * ops.lift(x, Fraction(1, 1 << (form.mantissa + 1)))
    least = mx.e8m0(scale) * Fraction(1, 1 << (form.bias + form.mantissa))
    return ops.maximum(relative, ops.lift(x, least))
