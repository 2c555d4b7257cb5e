"""What makes a configuration well formed."""

from typing import TYPE_CHECKING

from k3.config.section import Wrong

if TYPE_CHECKING:
    from k3.config.config import K3Config


def check(config: "K3Config") -> list[Wrong]:
    """Return every wrong field of a config."""
    return []
