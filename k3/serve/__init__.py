"""Serving: the hybrid prefix cache and what runs on it."""

from k3.serve.keys import Image as Image
from k3.serve.layout import CacheOptions as CacheOptions
from k3.serve.prefill import prefill as prefill
from k3.serve.prefix import PrefixCache as PrefixCache

__all__ = ["CacheOptions", "Image", "PrefixCache", "prefill"]
