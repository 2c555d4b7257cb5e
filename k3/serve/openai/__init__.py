"""The OpenAI-compatible HTTP server over an engine's worker (docs/serving.md)."""

from k3.serve.openai.app import app as app
from k3.serve.openai.options import ServerOptions as ServerOptions

__all__ = ["ServerOptions", "app"]
