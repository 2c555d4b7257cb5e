"""Fourteen text layers of odd sizes whose weights are drawn from their names."""

import hashlib
import json
from functools import cache

import numpy as np
from readings import released

from k3.config import K3Config


@cache
def golden():
    with np.load(released.PLACE.parent / "text14.npz") as file:
        return dict(file)


def config():
    return K3Config.from_dict(json.loads(str(golden()["config"])))


def draw(name, shape):
    """The recorded generator: MT19937 seeded by a hash of the name, 24 bits a draw."""
    salted = f"{golden()['salt']}/{name}".encode()
    seed = int.from_bytes(hashlib.sha256(salted).digest()[:8], "little") & (2**63 - 1)
    source = np.random.RandomState(seed & 0xFFFFFFFF)
    raw = source.randint(0, 2**32, size=int(np.prod(shape)), dtype=np.uint32)
    unit = ((raw & 0xFFFFFF).astype(np.float32) * np.float32(2**-24)).reshape(shape)
    low, high = span(name)
    x = unit * np.float32(high - low) + np.float32(low)
    return np.log(x) if name.endswith("A_log") else x


def span(name):
    if name.endswith("A_log"):
        return 1, 16
    if name.endswith("dt_bias"):
        return -4, 1
    owner = name.rsplit(".", 2)[-2]
    return (0.8, 1.2) if "norm" in owner else (-0.08, 0.08)


@cache
def weights():
    shapes = json.loads(str(golden()["param_shapes"]))
    out = {n: draw(n, tuple(s)).astype(float) for n, s in shapes.items()}
    pad = config().text.pad_token_id
    if pad is not None:
        out["model.embed_tokens.weight"][pad] = 0
    return out
