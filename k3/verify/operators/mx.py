"""MXFP4: bytes to values and back, compared bit for bit."""

from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from k3.kernels import mx
from k3.spec import mx as spec
from k3.verify.exact.pairs.pair import Shadows
from k3.verify.operators.operator import Operator, Reading, Values, changed

BITWISE = dict.fromkeys((torch.float64, torch.float32, torch.bfloat16), 0.0)


def _bytes(draw: Shadows) -> Values:
    words = torch.randint(0, 256, (5, 48), generator=draw.generator)
    scales = torch.randint(110, 140, (5, 3), generator=draw.generator)
    return {"packed": words.to(torch.uint8), "scale": scales.to(torch.uint8)}


def _decode(packed: Tensor, scale: Tensor) -> Tensor:
    return mx.decode(packed, scale, torch.float64)


def _decoded(packed: Any, scale: Any) -> Any:
    pairs = zip(packed.tolist(), scale.tolist(), strict=True)
    return np.array([[float(x) for x in spec.decode_row(*pair)] for pair in pairs])


def _encoded(x: Any) -> Any:
    packed, scale = [], []
    for row in np.asarray(x, dtype=float):
        groups = row.reshape(-1, spec.GROUP)
        blocks = [spec.encode_block([*map(_fraction, g)]) for g in groups]
        packed.append([b for block in blocks for b in spec.pack(block.codes)])
        scale.append([block.scale for block in blocks])
    return np.array(packed, dtype=np.uint8), np.array(scale, dtype=np.uint8)


def _fraction(x: float) -> Fraction:
    return Fraction(float(x))


def _nibbles(packed: Tensor) -> Tensor:
    return (packed << 4) | (packed >> 4)


DECODE = Operator(
    name="mx.decode",
    says="MXFP4: E2M1 nibbles, low first, times 2^(byte - 127) for groups of 32",
    program=_decode,
    reference=_decoded,
    draw=_bytes,
    layouts={"packed": "R I/2 bytes", "scale": "R I/32 bytes", "values": "R I"},
    outputs=("values",),
    exact=False,
    tolerance=BITWISE,
    readings=(
        Reading(
            "exchanging the nibbles of each byte: it reads the high one first",
            changed(packed=_nibbles),
        ),
        Reading(
            "dividing by 2: its scale is 2^(byte - 126)",
            after=changed(values=lambda x: x / 2),
        ),
        Reading(
            "multiplying by 2: its scale is 2^(byte - 128)",
            after=changed(values=lambda x: x * 2),
        ),
    ),
)
ENCODE = Operator(
    name="mx.encode",
    says="MXFP4: nearest codes, ties to even, under the compressed-tensors scale rule",
    program=mx.encode,
    reference=_encoded,
    draw=lambda draw: {"x": draw.normal(4, 96) * 4.0},
    layouts={"x": "R I", "packed": "R I/2 bytes", "scale": "R I/32 bytes"},
    outputs=("packed", "scale"),
    exact=False,
    tolerance=BITWISE,
    readings=(
        Reading(
            "exchanging the nibbles of each byte: it writes the high one first",
            after=changed(packed=_nibbles),
        ),
    ),
)
OPERATORS = (DECODE, ENCODE)
