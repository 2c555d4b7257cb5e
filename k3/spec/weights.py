"""Names of the checkpoint: the weights that belong to one module."""

from collections.abc import Mapping

from k3.spec.ops import Array

Weights = Mapping[str, Array]


def under(weights: Weights, prefix: str) -> dict[str, Array]:
    """The weights whose names start with a prefix, without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in weights.items()
        if name.startswith(prefix)
    }
