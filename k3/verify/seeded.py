"""Weights from a salt: a golden file names its numbers instead of storing them.

The generator of each parameter is MT19937, seeded with the hash of salt and name.
"""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Weights = dict[str, NDArray[np.float32]]


def weights(salt: str, shapes: Mapping[str, Sequence[int]], pad_id: int) -> Weights:
    """All parameters by name; the padding row of the embedding is zero."""
    made = {name: parameter(salt, name, shape) for name, shape in shapes.items()}
    for name, value in made.items():
        if name.endswith("embed_tokens.weight"):
            value[pad_id] = 0
    return made


def parameter(salt: str, name: str, shape: Sequence[int]) -> NDArray[np.float32]:
    """One parameter, uniform in the range that its name asks for."""
    digest = hashlib.sha256(f"{salt}/{name}".encode()).digest()
    seed = int.from_bytes(digest[:8], "little") & (2**63 - 1)
    generator = np.random.MT19937()
    generator._legacy_seeding(seed & 0xFFFFFFFF)
    raw = generator.random_raw(int(np.prod(shape))) & 0xFFFFFF
    low, high = bounds(name)
    unit = raw.astype(np.float32) * np.float32(2**-24)
    value = unit * np.float32(high - low) + np.float32(low)
    return (np.log(value) if name.endswith("A_log") else value).reshape(shape)


def bounds(name: str) -> tuple[float, float]:
    """The range of a parameter's numbers (of A itself for A_log)."""
    *owners, last = name.split(".")
    if last == "A_log":
        return 1.0, 16.0
    if last == "dt_bias":
        return -4.0, 1.0
    return (0.8, 1.2) if owners and "norm" in owners[-1] else (-0.08, 0.08)
