"""Training: the recipe, the loop, and the card of what came out."""

from k3.train.recipe import Recipe as Recipe

__all__ = ["Recipe"]
