"""Serving: the hybrid prefix cache, the engine, and the thread that runs it."""

from k3.serve.engine import Engine as Engine
from k3.serve.keys import Image as Image
from k3.serve.layout import CacheOptions as CacheOptions
from k3.serve.options import EngineOptions as EngineOptions
from k3.serve.prefill import prefill as prefill
from k3.serve.prefix import PrefixCache as PrefixCache
from k3.serve.request import Output as Output
from k3.serve.request import Request as Request
from k3.serve.worker import Worker as Worker

__all__ = [
    "CacheOptions",
    "Engine",
    "EngineOptions",
    "Image",
    "Output",
    "PrefixCache",
    "Request",
    "Worker",
    "prefill",
]
