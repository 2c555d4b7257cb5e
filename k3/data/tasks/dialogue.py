"""What the dialogues share: efforts and messages."""

import random
from typing import Any

EFFORTS = (None, None, None, None, "low", "high", "max")
"""Mostly without thinking: the message that says how much is long."""


def effort(rng: random.Random) -> str | None:
    """How much thinking a dialogue says it wants; None says nothing."""
    return rng.choice(EFFORTS)


def user(content: Any) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": content}


def assistant(content: str) -> dict[str, Any]:
    """An answer in the response channel."""
    return {"role": "assistant", "content": content}
