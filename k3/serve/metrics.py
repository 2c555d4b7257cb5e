"""What an engine has done and holds, as plain numbers."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Metrics:
    """A snapshot: `running`, `waiting` and `*_bytes` are of now, the rest is counted.

    `cache_usage` is the share of the prefix cache's pages that are held.
    """

    running: int = 0
    waiting: int = 0
    long_running: int = 0
    long_waiting: int = 0
    state_bytes: int = 0
    cache_usage: float = 0.0
    prefix_queries: int = 0
    prefix_hits: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generation_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    steps: int = 0
    requests: int = 0
    finished_stop: int = 0
    finished_length: int = 0
    finished_abort: int = 0
    finished_error: int = 0
    preemptions: int = 0
    images_encoded: int = 0
