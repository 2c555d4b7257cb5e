"""Prometheus metrics: what the server saw and what the engine says of itself.

Names are vLLM's behind our own prefix, so that dashboards port by search and replace.
"""

import time
from collections import Counter as Count
from collections.abc import Iterator
from typing import Any

from k3.serve.metrics import Metrics
from k3.serve.request import Output

# Name, help, field of the engine's Metrics.
GAUGES = (
    ("num_requests_running", "Sequences under way.", "running"),
    ("num_requests_waiting", "Sequences that wait for room.", "waiting"),
    ("kv_cache_usage_perc", "Share of the prefix cache in use.", "cache_usage"),
    ("state_bytes", "Bytes of the states of running sequences.", "state_bytes"),
    ("num_long_requests_running", "Long sequences under way.", "long_running"),
    ("num_long_requests_waiting", "Long sequences that wait.", "long_waiting"),
)
COUNTERS = (
    ("prefix_cache_queries", "Prompt tokens looked up.", "prefix_queries"),
    ("prefix_cache_hits", "Prompt tokens found.", "prefix_hits"),
    ("prefix_cache_loads", "States taken from disk.", "prefix_loads"),
    ("prompt_tokens", "Prompt tokens.", "prompt_tokens"),
    ("cached_tokens", "Prompt tokens taken from the cache.", "cached_tokens"),
    ("generation_tokens", "Generated tokens.", "generation_tokens"),
    ("spec_decode_num_draft_tokens", "Drafted tokens.", "drafted_tokens"),
    ("spec_decode_num_accepted_tokens", "Drafted and kept.", "accepted_tokens"),
    ("num_preemptions", "Sequences sent back to wait.", "preemptions"),
    ("engine_steps", "Steps of the engine.", "steps"),
    ("images_encoded", "Images through the vision tower.", "images_encoded"),
)
SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Counters:
    """The counters and histograms of one server, in a registry of its own."""

    def __init__(self, model: str) -> None:
        import prometheus_client as prometheus

        self._prometheus = prometheus
        self.registry = prometheus.CollectorRegistry(auto_describe=False)
        self._model = model
        self.problems: Count[str] = Count()
        made: dict[str, Any] = {"registry": self.registry, "labelnames": ["model_name"]}
        times: dict[str, Any] = {**made, "buckets": SECONDS}
        self.first_token = prometheus.Histogram(
            "k3:time_to_first_token_seconds", "Arrival to first token.", **times
        ).labels(model)
        self.between = prometheus.Histogram(
            "k3:inter_token_latency_seconds", "Token to token.", **times
        ).labels(model)
        self.whole = prometheus.Histogram(
            "k3:e2e_request_latency_seconds", "Arrival to last token.", **times
        ).labels(model)
        self._finished = prometheus.Counter(
            "k3:request_success_total",
            "Samples that ended, by reason.",
            ["model_name", "finished_reason"],
            registry=self.registry,
        )
        self._answers = prometheus.Counter(
            "k3:http_responses_total",
            "Answers by path and status.",
            ["model_name", "path", "status"],
            registry=self.registry,
        )

    def clock(self) -> "Clock":
        """A clock for one request."""
        return Clock(self)

    def finished(self, reason: str) -> None:
        """A sample has ended."""
        self._finished.labels(self._model, reason).inc()

    def answered(self, path: str, status: int) -> None:
        """An HTTP answer was begun."""
        self._answers.labels(self._model, path, str(status)).inc()

    def exposition(self, engine: Metrics | None) -> bytes:
        """The text of /metrics; without an engine only the server's own."""
        registry = self._prometheus.CollectorRegistry(auto_describe=False)
        registry.register(_Engine(self, engine))
        found = self._prometheus.generate_latest(self.registry)
        return bytes(found + self._prometheus.generate_latest(registry))

    def families(self, engine: Metrics | None) -> Iterator[Any]:
        """The engine's numbers and the slips of the model, as metric families."""
        from prometheus_client import core

        slips = core.CounterMetricFamily(
            "k3:answer_problems", "Slips of the model's format.", labels=["kind"]
        )
        for kind, count in sorted(self.problems.items()):
            slips.add_metric([kind], count)
        yield slips
        if engine is None:
            return
        for rows, made in (
            (GAUGES, core.GaugeMetricFamily),
            (COUNTERS, core.CounterMetricFamily),
        ):
            for name, words, field in rows:
                family = made(f"k3:{name}", words, labels=["model_name"])
                family.add_metric([self._model], getattr(engine, field))
                yield family


class Clock:
    """Times one request: its first token, the gaps, its end."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._began = time.perf_counter()
        self._last: dict[int, float] = {}

    def take(self, output: Output) -> None:
        """Count an output of the engine."""
        now = time.perf_counter()
        if output.tokens:
            before = self._last.get(output.index)
            if before is None:
                self._counters.first_token.observe(now - self._began)
            else:
                each = (now - before) / len(output.tokens)
                for _ in output.tokens:
                    self._counters.between.observe(each)
            self._last[output.index] = now
        if output.finish:
            self._counters.whole.observe(now - self._began)
            self._counters.finished(output.finish)


class _Engine:
    """What prometheus asks for families."""

    def __init__(self, counters: Counters, engine: Metrics | None) -> None:
        self._counters, self._engine = counters, engine

    def collect(self) -> Iterator[Any]:
        return self._counters.families(self._engine)
