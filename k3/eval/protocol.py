"""Protocols: what is asked or played, under which conditions. Data only."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from k3.data.xtml.options import EFFORTS
from k3.envs import registry
from k3.errors import RequestError
from k3.post import context

NO_THINKING = "none"
LEAST = {"count": 1, "samples": 1, "max_tokens": 1, "batch": 1, "context_tokens": 0}
SETTABLE = (
    *("samples", "temperature", "top_p", "effort", "context", "context_tokens"),
    *("max_tokens", "batch", "seed"),
)
"""Conditions that a run may set; `turns` too where an environment is played."""

_Any = TypeVar("_Any", bound="Conditions")


@dataclass(frozen=True, kw_only=True, slots=True)
class Conditions:
    """How `count` held-out instances are tried, `samples` times each.

    At temperature 0 the most likely token is taken, so one attempt says all. `effort`
    is low, high or max, `none` for no thinking, or empty for what the instance says.
    `context` names what is done when the context is full (`k3.post.context`);
    `context_tokens` 0 is all that the model has. `batch` run at a time. `score` is
    the figure that stands for the protocol.
    """

    name: str
    score: str = "right"
    count: int = 200
    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    effort: str = ""
    context: str = "end"
    context_tokens: int = 0
    max_tokens: int = 32
    batch: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        wrong = [
            f"{key} must be at least {least}: got {getattr(self, key)}"
            for key, least in LEAST.items()
            if getattr(self, key) < least
        ]
        if not 0 <= self.temperature < float("inf"):
            wrong.append(f"temperature must be at least 0: got {self.temperature}")
        if not 0 < self.top_p <= 1:
            wrong.append(f"top_p must be above 0 and at most 1: got {self.top_p}")
        if self.effort not in ("", NO_THINKING, *EFFORTS):
            wrong.append(
                f"effort must be {NO_THINKING}, {', '.join(EFFORTS)} or empty: got "
                f"{self.effort!r}"
            )
        if wrong:
            raise RequestError("; ".join(wrong))
        context.named(self.context)
        if self.samples > 1 and self.temperature == 0:
            raise RequestError(
                "several samples need a temperature above 0: got samples="
                f"{self.samples} at temperature 0, which are all the same; raise it"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Protocol(Conditions):
    """Questions of a task of `k3.data.tasks`, each with one answer, and their judge."""

    task: str
    judge: str = "exact"

    def __post_init__(self) -> None:
        # The two arguments are needed where a dataclass has slots.
        super(Protocol, self).__post_init__()
        if self.context != "end":
            raise RequestError(
                "a question has no turns to take away: got context="
                f"{self.context}; leave it at end"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Play(Conditions):
    """Episodes in an environment of `k3.envs.registry`, of at most `turns` answers.

    The harness is part of the environment's name, as in `table@react`.
    """

    environment: str
    turns: int = 32
    score: str = "solved"
    max_tokens: int = 256

    def __post_init__(self) -> None:
        super(Play, self).__post_init__()
        if self.turns < 1:
            raise RequestError(f"turns must be at least 1: got {self.turns}")


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol(name="digits", task="digits", count=374),
        Protocol(name="recall", task="recall", count=400, max_tokens=1),
        Protocol(
            name="tools", task="tools", judge="call", score="valid", max_tokens=128
        ),
        Protocol(name="chat", task="chat", judge="words"),
    )
}


def named(name: str) -> Protocol | Play:
    """The protocol of this name, or one that plays the environment of this name.

    Raises: RequestError.
    """
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    if name.partition("@")[0] in registry.names():
        # A harness that nobody has is refused here, not at the first episode.
        registry.named(name)
        return Play(name=name, environment=name)
    raise RequestError(
        f"a protocol is one of {', '.join(PROTOCOLS)}, or an environment, "
        f"{', '.join(registry.names())}: got {name!r}; choose one"
    )


def changed(protocol: _Any, given: Mapping[str, Any]) -> _Any:
    """The protocol under other conditions. Raises: RequestError."""
    wrong = [
        f"{key} must be like {getattr(protocol, key)!r}: got {value!r}"
        for key, value in given.items()
        if not _suits(value, getattr(protocol, key))
    ]
    if wrong:
        raise RequestError("; ".join(wrong))
    return dataclasses.replace(protocol, **given)


def _suits(value: Any, like: Any) -> bool:
    """Whether a value has the type of the one it replaces; 1 is a float too."""
    if isinstance(like, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(like)
