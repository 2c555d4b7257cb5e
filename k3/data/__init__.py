"""Text, images and corpora on their way into the model."""

from k3.data.tokenizer import Tokenizer as Tokenizer

__all__ = ["Tokenizer"]
