"""K3Config: the released config.json, its rules and its derived sizes."""

from k3.config.config import K3Config as K3Config
from k3.config.quantization import QuantizationConfig as QuantizationConfig
from k3.config.text import LinearAttnConfig as LinearAttnConfig
from k3.config.text import TextConfig as TextConfig
from k3.config.vision import VisionConfig as VisionConfig

__all__ = [
    "K3Config",
    "LinearAttnConfig",
    "QuantizationConfig",
    "TextConfig",
    "VisionConfig",
]
