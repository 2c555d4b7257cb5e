"""Random inputs for a graph at given sizes, reproducible from a seed."""

from typing import Any

import numpy as np

from k3.graph.dims import Sizes, value
from k3.graph.term import Block

# Small, and different where a mistake could hide: one size for each name.
SIZES: Sizes = {
    **{"D": 5, "H": 2, "K": 3, "V": 4, "P": 3, "Rf": 2, "Rg": 2},
    **{"M": 3, "n": 2, "r": 1, "v": 2, "R": 3, "Rq": 4, "T": 4},
    **{"E": 5, "A": 2, "L": 3, "F": 4, "Fs": 3, "Fd": 6, "W": 7, "N": 2, "I": 6},
    **{"t": 1, "h2": 2, "a": 2, "w2": 1, "b": 2, "c": 3, "x": 2, "y": 1},
    **{"Hp": 3, "Wp": 5, "e": 3, "G": 2, "d": 2, "Fv": 5},
}


def sizes(block: Block, given: Sizes | None = None) -> dict[str, int]:
    """The sizes that a block needs: those given, else the small ones above."""
    chosen = {**SIZES, **(given or {})}
    return {name: chosen.get(name, 2) for name in block.dims}


def draw(block: Block, sizes: Sizes, seed: int = 0) -> dict[str, Any]:
    """An array for each input: normal reals, integers below their domain.

    Integers without a domain are 0 or 1.
    """
    rng = np.random.default_rng(seed)
    out: dict[str, Any] = {}
    for name, node in block.inputs.items():
        shape = tuple(value(d, sizes) for d in node.shape)
        if node.dtype == "real":
            out[name] = rng.normal(size=shape)
        else:
            domain = node.type.domain
            bound = 2 if domain is None else value(domain, sizes)
            out[name] = rng.integers(0, bound, size=shape)
        out[name] = np.asarray(out[name])
    return out
