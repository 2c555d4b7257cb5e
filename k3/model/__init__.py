"""Kimi K3 as torch modules that carry the checkpoint's parameter names."""

from k3.model.decode_state import DecodeState as DecodeState
from k3.model.model import Model as Model

__all__ = ["DecodeState", "Model"]
