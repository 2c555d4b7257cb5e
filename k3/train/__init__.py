"""Training: the data, the loop, and the card of what came out."""

__all__: list[str] = []
