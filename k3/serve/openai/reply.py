"""What chat and completion answers share: identity, usage, log-probabilities."""

import time
from dataclasses import dataclass, field
from typing import Any

from k3.data.tokenizer import Tokenizer
from k3.serve.request import Output

# JSON has no minus infinity; OpenAI's own stand-in.
LEAST_LOGPROB = -9999.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """What every chunk of an answer repeats."""

    id: str
    model: str
    fingerprint: str
    created: int = field(default_factory=lambda: int(time.time()))

    def body(self, kind: str, choices: list[Any]) -> dict[str, Any]:
        """The frame of an answer or a chunk of the OpenAI object `kind`."""
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
            "choices": choices,
        }


class Usage:
    """Tokens of an answer: every prompt once, every sample's tokens."""

    def __init__(self, prompt_tokens: int) -> None:
        self.prompt_tokens = prompt_tokens
        self._cached: dict[int, int] = {}

    def take(self, place: int, output: Output) -> None:
        """Note what was cached for request `place`; its samples share one prompt."""
        self._cached[place] = max(self._cached.get(place, 0), output.cached_tokens)

    def body(self, completion: int, reasoning: int = 0) -> dict[str, Any]:
        """OpenAI's usage object."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
            "prompt_tokens_details": {"cached_tokens": sum(self._cached.values())},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }


def finite(logprob: float) -> float:
    """A log-probability that JSON can hold."""
    return max(logprob, LEAST_LOGPROB)


def token_entry(tokenizer: Tokenizer, token_id: int, logprob: float) -> dict[str, Any]:
    """A token of chat log-probabilities: its text, its value, its bytes."""
    data = tokenizer.token_bytes(token_id)
    text = data.decode("utf-8", "replace")
    return {"token": text, "logprob": finite(logprob), "bytes": list(data)}
