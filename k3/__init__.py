"""Kimi K3 in Python: read it, check it, run it, train it, serve it.

`k3.load` and `k3.tokenizer` are imported on first use, so that `import k3` and
`k3 --help` stay free of torch.
"""

from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "load", "tokenizer"]


def __getattr__(name: str) -> Any:
    """Import `load` and `tokenizer` when they are first asked for."""
    if name == "load":
        from k3.checkpoint.load import load

        return load
    if name == "tokenizer":
        from k3.checkpoint.vocabulary import tokenizer

        return tokenizer
    raise AttributeError(f"module 'k3' has no attribute {name!r}")
