"""The engine: requests in, tokens out, one step at a time."""

from k3.model import Model
from k3.model.completion import Decodes
from k3.serve.metrics import Metrics
from k3.serve.options import EngineOptions as EngineOptions
from k3.serve.request import Output, Request


class Engine:
    """Continuous batching over one model. Synchronous: one thread owns it."""

    def __init__(
        self,
        model: Model,
        options: EngineOptions,
        *,
        tokenizer: Decodes | None = None,
        draft: object | None = None,
        weights: str = "",
    ) -> None:
        self.model, self.options, self.tokenizer = model, options, tokenizer
        self.draft, self.weights = draft, weights

    @property
    def busy(self) -> bool:
        """Whether a step has anything to do."""
        return False

    def check(self, request: Request) -> None:
        """Refuse what can never run here; raises RequestError."""

    def add(self, request: Request) -> None:
        """Queue a request; raises RequestError for what can never run."""
        self.check(request)

    def cancel(self, request_id: str) -> None:
        """End a request with `abort` and free what it holds; unknown ids are ignored."""

    def step(self) -> list[Output]:
        """Run one pass over prompts and one over running sequences."""
        return []

    def snapshot(self) -> Metrics:
        """Return what is held now and what was counted so far."""
        return Metrics()

    def reset_prefix_cache(self) -> None:
        """Forget every stored prefix; what runs goes on."""

    def new_weights(self, weights: str = "") -> None:
        """Drop every state: the model's weights have changed and are called this."""
