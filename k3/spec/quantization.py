"""Quantization-aware training: values pass through their codes and back.

The paper trains expert products with MXFP4 weights and MXFP8 activations; the release
stores MXFP4 weights and names no activation format (release notes §6.9).
"""

from fractions import Fraction

from k3.spec import mx, mxfp8, ops
from k3.spec.mx import Fp8, Rule
from k3.spec.ops import Array


def fake_weights(W: Array, rule: Rule = "ceil") -> Array:
    """QAT: each row of W [O I] through MXFP4 blocks along its input axis. [O I].

    Backward is the identity (straight through): a code has no derivative.
    """
    return ops.stack([_row(row, rule) for row in W])


def fake_activation(x: Array, form: Fp8 = mx.E4M3) -> Array:
    """QAT: x [I] through MXFP8 blocks of 32. [I]."""
    values: list[Fraction] = []
    for start in range(0, len(x), mx.GROUP):
        block = mxfp8.encode_block(form, _group(x, start))
        values += mxfp8.decode_block(form, block)
    return ops.stack([ops.lift(x, value) for value in values])


def product(W: Array, x: Array, rule: Rule = "ceil", form: Fp8 = mx.E4M3) -> Array:
    """QAT: what an expert's product becomes, W and x both through their codes. [O]."""
    return fake_weights(W, rule) @ fake_activation(x, form)


def _group(row: Array, start: int) -> list[Array]:
    return [row[i] for i in range(start, start + mx.GROUP)]


def _row(row: Array, rule: Rule) -> Array:
    values: list[Fraction] = []
    for start in range(0, len(row), mx.GROUP):
        values += mx.decode_block(mx.encode_block(_group(row, start), rule))
    return ops.stack([ops.lift(row, value) for value in values])
