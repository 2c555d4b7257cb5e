"""Evaluation: protocols over held-out questions, their metrics, runs that resume."""

from k3.eval.figures import Figure as Figure
from k3.eval.protocol import PROTOCOLS as PROTOCOLS
from k3.eval.protocol import Play as Play
from k3.eval.protocol import Protocol as Protocol
from k3.eval.protocol import named as named
from k3.eval.result import Result as Result
from k3.eval.run import run as run
from k3.eval.talk import conduct as conduct
from k3.eval.text import bits_per_byte as bits_per_byte

__all__ = [
    "PROTOCOLS",
    "Figure",
    "Play",
    "Protocol",
    "Result",
    "bits_per_byte",
    "conduct",
    "named",
    "run",
]
