"""The tokenizer that lies beside a checkpoint."""

import os

from k3.checkpoint import locate
from k3.data.tokenizer import Tokenizer


def tokenizer(name: str | os.PathLike[str] = "tiny") -> Tokenizer:
    """Return the tokenizer of a MODEL: a directory, or the built-in "tiny"."""
    return Tokenizer.load(locate.locate(name))
