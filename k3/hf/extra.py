"""Whether transformers is there; importing this asks, before anything needs it."""

import importlib.util

from k3.errors import RequestError


def check() -> None:
    """Raise RequestError with the command that installs transformers."""
    if importlib.util.find_spec("transformers") is None:
        raise RequestError("k3.hf needs the hf extra: pip install 'k3[hf]'")


check()
