"""Waiting times of a fleet without a model: the router, the lanes and the caches.

Discrete events: conversations arrive, steps end, replicas fail and come back. The
choice of a replica and the admission are the code that serves.
"""

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from k3.config import K3Config
from k3.errors import RequestError
from k3.serve import route, traffic
from k3.serve.options import EngineOptions
from k3.serve.simulated import Job, Machine, Speed
from k3.serve.traffic import Conversation, Kind

POLICIES = {
    "all": (True, True),
    "no classes": (False, True),
    "no affinity": (True, False),
    "neither": (False, False),
}
"""(per-class admission, prefix-affine routing) of the fleets that are compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A fleet and its traffic. `failures` are (replica, from second, to second)."""

    replicas: int = 4
    seconds: float = 300.0
    seed: int = 0
    kinds: tuple[Kind, ...] = traffic.KINDS
    burst: float = 4.0
    burst_seconds: tuple[float, float] = (120.0, 150.0)
    failures: tuple[tuple[int, float, float], ...] = ((0, 200.0, 230.0),)
    options: EngineOptions = field(
        default_factory=lambda: EngineOptions(state_bytes=2**36, long_state_bytes=2**36)
    )
    speed: Speed = field(default_factory=Speed)
    cache_bytes: int = 2**38

    def __post_init__(self) -> None:
        if self.replicas < 1:
            raise RequestError(f"replicas must be at least 1: got {self.replicas}")
        for which, begin, end in self.failures:
            if not (0 <= which < self.replicas and 0 <= begin < end):
                raise RequestError(
                    "a failure is (replica, from second, to second), replicas from 0 "
                    f"to {self.replicas - 1}: got {(which, begin, end)}"
                )


@dataclass(frozen=True, slots=True)
class Done:
    """What one request met with."""

    kind: str
    first: float
    total: float
    prompt: int
    cached: int
    preempted: int
    attempts: int


class Fleet:
    """The events of one run, in the order of their time."""

    def __init__(
        self, plan: Plan, config: K3Config, by_class: bool, affine: bool
    ) -> None:
        self.plan, self.affine = plan, affine
        names = [str(i) for i in range(plan.replicas)]
        self.ring = route.Ring(names)
        self.machines = {
            name: Machine(
                config,
                plan.options,
                plan.speed,
                cache_bytes=plan.cache_bytes,
                by_class=by_class,
            )
            for name in names
        }
        self.up, self.stepping = set(names), dict.fromkeys(names, 0)
        self.busy: set[str] = set()
        self.done: list[Done] = []
        self.waiting: list[Job] = []
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._count = itertools.count()
        self._place = itertools.cycle(names)

    def at(self, time: float, what: Callable[[float], None]) -> None:
        """Do something at a time; at one time, in the order of the calls."""
        heapq.heappush(self._events, (time, next(self._count), what))

    def run(self, talks: Sequence[Conversation]) -> list[Done]:
        """All requests, in the order in which they ended."""
        for talk in talks:
            self.at(talk.start, self._asks(talk, 0, 0))
        for which, begin, end in self.plan.failures:
            self.at(begin, self._fails(str(which)))
            self.at(end, self._returns(str(which)))
        while self._events:
            now, _, what = heapq.heappop(self._events)
            what(now)
        return self.done

    def _asks(
        self, talk: Conversation, turn: int, held: int
    ) -> Callable[[float], None]:
        held = held or talk.kind.system_tokens
        prompt = held + talk.turns[turn].new_tokens
        return lambda now: self._send(Job(talk, turn, prompt, now), now)

    def _send(self, job: Job, now: float) -> None:
        """Route a request; with no replica up, it waits for the first to return."""
        loads = {name: self.machines[name].load for name in sorted(self.up)}
        if not loads:
            self.waiting.append(job)
            return
        if self.affine:
            name = route.choose(self.ring.order(job.talk.key), loads)[0]
        else:
            start = next(self._place)
            name = min(loads, key=lambda n: (loads[n], n < start, n))
        self.machines[name].add(job)
        if name not in self.busy:
            self._step(name, now)

    def _step(self, name: str, now: float) -> None:
        """Begin a step; its end is an event, void if the replica fails before."""
        self.busy.add(name)
        mark = self.stepping[name]
        until = self._events[0][0] if self._events else float("inf")
        end, finished = self.machines[name].step(now, until)
        self.at(end, lambda then: self._stepped(name, mark, finished, then))

    def _stepped(self, name: str, mark: int, finished: list[Job], now: float) -> None:
        if mark != self.stepping[name]:
            for job in finished:
                self._again(job, now)
            return
        self.busy.discard(name)
        for job in finished:
            self._end(job, now)
        if self.machines[name].load and name not in self.busy:
            self._step(name, now)

    def _end(self, job: Job, now: float) -> None:
        assert job.first is not None
        first, total = job.first - job.arrived, now - job.arrived
        kind, more = job.talk.kind.name, (job.preempted, job.attempts)
        self.done.append(Done(kind, first, total, job.prompt, job.cached, *more))
        if job.turn + 1 < len(job.talk.turns):
            think = job.talk.turns[job.turn].think_seconds
            self.at(now + think, self._asks(job.talk, job.turn + 1, len(job)))

    def _fails(self, name: str) -> Callable[[float], None]:
        def fail(now: float) -> None:
            self.up.discard(name)
            self.busy.discard(name)
            self.stepping[name] += 1
            for job in self.machines[name].crash():
                self._again(job, now)

        return fail

    def _again(self, job: Job, now: float) -> None:
        """A request whose replica is lost starts anew on another one."""
        again = Job(job.talk, job.turn, job.prompt, job.arrived)
        # Tokens that the client has seen are repeated, not waited for twice.
        again.first = job.first if job.first is not None and job.first <= now else None
        again.attempts, again.preempted = job.attempts + 1, job.preempted
        self._send(again, now)

    def _returns(self, name: str) -> Callable[[float], None]:
        def back(now: float) -> None:
            self.up.add(name)
            waiting, self.waiting = self.waiting, []
            for job in waiting:
                self._send(job, now)

        return back


def simulate(plan: Plan, config: K3Config) -> dict[str, list[Done]]:
    """What every policy does with the same traffic."""
    talks = traffic.conversations(
        plan.kinds,
        plan.seconds,
        plan.seed,
        burst=plan.burst,
        burst_seconds=plan.burst_seconds,
    )
    return {
        name: Fleet(plan, config, *which).run(talks) for name, which in POLICIES.items()
    }


def summary(done: Sequence[Done], kinds: Sequence[Kind]) -> dict[str, dict[str, Any]]:
    """Numbers of each class: requests, seconds to the first token and in all."""
    found = {}
    for kind in kinds:
        ours = [each for each in done if each.kind == kind.name]
        prompts = sum(each.prompt for each in ours)
        found[kind.name] = {
            "requests": len(ours),
            "first": quantiles([each.first for each in ours]),
            "total": quantiles([each.total for each in ours]),
            "cached": sum(each.cached for each in ours) / prompts if prompts else 0.0,
            "preempted": sum(each.preempted for each in ours),
            "rerouted": sum(each.attempts > 1 for each in ours),
        }
    return found


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """The smallest values that 50, 90 and 99 % do not exceed; 0 without values."""
    ordered = sorted(values)
    picks = {}
    for percent in (50, 90, 99):
        place = -(-percent * len(ordered) // 100) - 1
        picks[f"p{percent}"] = ordered[place] if ordered else 0.0
    return picks


def describe(plan: Plan) -> dict[str, Any]:
    """The plan as plain values."""
    return asdict(plan)
