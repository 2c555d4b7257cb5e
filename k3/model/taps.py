"""Named intermediate values of a forward pass, for whoever asked to see them."""

from torch import Tensor

Taps = dict[str, Tensor]


def record(taps: Taps | None, name: str, value: Tensor) -> None:
    """Store a value under its name, if the caller passed a dict to fill."""
    if taps is not None:
        taps[name] = value
