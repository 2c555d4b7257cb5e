"""Mixed traffic for the simulator: conversations of short, long and huge prompts."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from k3.errors import RequestError


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A class of requests: how often conversations begin, and how they look.

    `per_minute` conversations start each minute (Poisson); lengths are means, turns
    at least one. `system_tokens` start every conversation of the class alike.
    """

    name: str
    per_minute: float
    prompt_tokens: int
    answer_tokens: int
    turns: float = 1.0
    think_seconds: float = 20.0
    system_tokens: int = 0


KINDS = (
    Kind(
        name="short",
        per_minute=60.0,
        prompt_tokens=700,
        answer_tokens=250,
        turns=4.0,
        system_tokens=1536,
    ),
    Kind(
        name="long",
        per_minute=4.0,
        prompt_tokens=24_000,
        answer_tokens=600,
        turns=3.0,
        system_tokens=1536,
    ),
    Kind(name="million", per_minute=0.2, prompt_tokens=800_000, answer_tokens=800),
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of a conversation: new tokens after what it holds already."""

    new_tokens: int
    answer_tokens: int
    think_seconds: float


@dataclass(frozen=True, slots=True)
class Conversation:
    """What will be asked, drawn before anything runs: all policies meet the same."""

    key: str
    kind: Kind
    start: float
    turns: tuple[Turn, ...] = field(default=())


def conversations(
    kinds: Sequence[Kind],
    seconds: float,
    seed: int,
    *,
    burst: float = 1.0,
    burst_seconds: tuple[float, float] = (0.0, 0.0),
) -> list[Conversation]:
    """All conversations that begin within `seconds`, in the order of their start.

    In the window `burst_seconds` they begin `burst` times as often.
    Raises: RequestError for a negative rate or duration.
    """
    if seconds <= 0 or burst < 0 or any(kind.per_minute < 0 for kind in kinds):
        raise RequestError(
            f"a simulation needs a positive duration and rates from 0: got {seconds} s"
        )
    found = []
    for place, kind in enumerate(kinds):
        numbers = random.Random(f"{seed}/{place}/{kind.name}")
        for n, start in enumerate(
            _starts(numbers, kind, seconds, (burst, *burst_seconds))
        ):
            found.append(_conversation(numbers, kind, n, start))
    return sorted(found, key=lambda c: (c.start, c.key))


def _starts(
    numbers: random.Random, kind: Kind, seconds: float, burst: tuple[float, ...]
) -> list[float]:
    """Poisson arrivals, thinned to the rate of the moment."""
    factor, begin, end = burst
    most = kind.per_minute / 60 * max(factor, 1.0)
    now, found = 0.0, []
    while most > 0 and (now := now + numbers.expovariate(most)) < seconds:
        rate = kind.per_minute / 60 * (factor if begin <= now < end else 1.0)
        if numbers.random() * most < rate:
            found.append(now)
    return found


def _conversation(
    numbers: random.Random, kind: Kind, n: int, start: float
) -> Conversation:
    count = 1
    while numbers.random() > 1 / max(kind.turns, 1.0):
        count += 1
    turns = tuple(
        Turn(
            _length(numbers, kind.prompt_tokens),
            _length(numbers, kind.answer_tokens),
            numbers.expovariate(1 / kind.think_seconds) if kind.think_seconds else 0.0,
        )
        for _ in range(count)
    )
    return Conversation(f"{kind.name}-{n}", kind, start, turns)


def _length(numbers: random.Random, mean: int) -> int:
    """A length around a mean: between its half and its double, mostly near it."""
    return max(1, round(mean * 2 ** numbers.triangular(-1, 1, 0)))
