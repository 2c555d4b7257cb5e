"""Named intermediate values of a forward pass, for whoever asked to see them."""

from collections.abc import MutableMapping

from torch import Tensor

Taps = MutableMapping[str, Tensor]
STEP = (".out_prefix", ".index", ".weights")
"""How names end that a step fills: the running sum behind a layer, its routes."""


def in_step(taps: Taps) -> Taps:
    """Return those values that a step fills."""
    return {name: x for name, x in taps.items() if name.endswith(STEP)}


def record(taps: Taps | None, name: str, value: Tensor) -> None:
    """Store a value under its name, if the caller passed a dict to fill."""
    if taps is not None:
        taps[name] = value
