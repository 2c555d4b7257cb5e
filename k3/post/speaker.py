"""Who answers a conversation: messages in, one answer and what it cost out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from k3.config import settings
from k3.data.xtml import Message, RenderOptions
from k3.envs.environment import Chat
from k3.errors import RequestError


class ContextFull(RequestError):
    """A conversation leaves no room for an answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How an answer is drawn; `context_tokens` 0 is all that the model has."""

    temperature: float = 1.0
    top_p: float = 0.95
    max_tokens: int = 512
    seed: int = 0
    context_tokens: int = 0

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        settings.check(self, _RULES)


_RULES = [
    ("max_tokens", *settings.POSITIVE),
    *((name, *settings.COUNT) for name in ("seed", "context_tokens")),
    ("temperature", "at least 0", lambda value: 0 <= value < math.inf),
    ("top_p", *settings.SHARE),
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens that were read and written; `cached` of those read cost less."""

    read: int = 0
    cached: int = 0
    written: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            read=self.read + other.read,
            cached=self.cached + other.cached,
            written=self.written + other.written,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Spoken:
    """An answer and its tokens."""

    message: Message
    usage: Usage


class Speaker(Protocol):
    """A model behind an engine or a server. Any thread may ask it."""

    def answer(
        self, messages: Sequence[Chat], wanted: RenderOptions, sampling: Sampling
    ) -> Spoken:
        """The answer to a conversation.

        Raises: ContextFull, RequestError for what is refused or breaks.
        """
