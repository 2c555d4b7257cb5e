"""Named intermediate values of a forward pass, for whoever asked to see them."""

from collections.abc import MutableMapping

from torch import Tensor

Taps = MutableMapping[str, Tensor]


def record(taps: Taps | None, name: str, value: Tensor) -> None:
    """Store a value under its name, if the caller passed a dict to fill."""
    if taps is not None:
        taps[name] = value
