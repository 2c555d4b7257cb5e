"""What an engine has done and holds, as plain numbers."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(kw_only=True, slots=True)
class Counts:
    """Counted since the engine was made. A prompt counts once, however many samples."""

    steps: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generation_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    finished_stop: int = 0
    finished_length: int = 0
    finished_abort: int = 0
    finished_error: int = 0
    preemptions: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Metrics:
    """A snapshot: `running`, `waiting`, `*_bytes` and `cache_usage` are of now.

    `cache_usage` is the share of the prefix cache's pages that are held;
    `prefix_queries` and `prefix_hits` are tokens looked up and found, those of a
    sequence that was preempted again; `prefix_loads` are states taken from disk. The
    rest is `Counts`.
    """

    running: int
    waiting: int
    long_running: int
    long_waiting: int
    state_bytes: int
    cache_usage: float
    prefix_queries: int
    prefix_hits: int
    prefix_loads: int
    images_encoded: int
    steps: int
    requests: int
    prompt_tokens: int
    cached_tokens: int
    generation_tokens: int
    drafted_tokens: int
    accepted_tokens: int
    finished_stop: int
    finished_length: int
    finished_abort: int
    finished_error: int
    preemptions: int


@dataclass(slots=True)
class Stats:
    """Counted since a prefix cache was made; `hit_rate` is in tokens."""

    lookups: int = 0
    hits: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    commits: int = 0
    aborts: int = 0
    not_stored: int = 0
    loads: int = 0
    overflow_full: int = 0

    @property
    def hit_rate(self) -> float:
        """Share of the prompt tokens that did not have to be run."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


def snapshot(counts: Counts, **now: Any) -> Metrics:
    """Put what was counted and what is held together."""
    return Metrics(**asdict(counts), **now)
