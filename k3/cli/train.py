"""`k3 train`: train the model that ships with the package."""

from k3.cli import options


def train(
    model: options.Model = "tiny",
    *,
    settings: options.Set = None,
    json: options.Json = False,
) -> int:
    """Train from scratch and write a checkpoint with its model card.

    \b
    k3 train tiny
    """
    raise NotImplementedError
