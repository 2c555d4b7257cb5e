"""The simulator: reproducible, complete, and right where a formula is known."""

import dataclasses
import io
import itertools
import math
import random

import pytest
import small
from rich.console import Console

from k3.errors import RequestError
from k3.serve import simulate, traffic, waiting
from k3.serve.options import EngineOptions
from k3.serve.simulate import Fleet, Plan
from k3.serve.simulated import Speed
from k3.serve.traffic import Conversation, Kind, Turn

KINDS = (
    Kind(
        name="short",
        per_minute=40.0,
        prompt_tokens=300,
        answer_tokens=40,
        turns=3.0,
        think_seconds=2.0,
        system_tokens=1024,
    ),
    Kind(name="long", per_minute=6.0, prompt_tokens=60_000, answer_tokens=30),
)
PLAN = Plan(
    replicas=2,
    seconds=30.0,
    kinds=KINDS,
    burst_seconds=(10.0, 12.0),
    failures=((0, 15.0, 18.0),),
    options=EngineOptions(max_num_seqs=8, long_tokens=10_000),
)


def test_it_repeats_and_every_request_ends():
    first = simulate.simulate(PLAN, small.config())
    assert first == simulate.simulate(PLAN, small.config())
    assert set(first) == set(simulate.POLICIES)
    talks = traffic.conversations(
        KINDS, 30.0, 0, burst=PLAN.burst, burst_seconds=PLAN.burst_seconds
    )
    wanted = sum(len(talk.turns) for talk in talks)
    assert wanted > 30
    for done in first.values():
        assert len(done) == wanted
        assert all(0 < each.first <= each.total for each in done)
        assert any(each.attempts > 1 for each in done)
    other = simulate.simulate(dataclasses.replace(PLAN, seed=1), small.config())
    assert other["all"] != first["all"]


def test_classes_and_affinity_help_whom_they_should():
    found = {
        name: simulate.summary(done, KINDS)
        for name, done in simulate.simulate(PLAN, small.config()).items()
    }
    shorts = {name: numbers["short"] for name, numbers in found.items()}
    assert shorts["all"]["first"]["p99"] < shorts["no classes"]["first"]["p99"] / 9
    assert shorts["all"]["cached"] > shorts["no affinity"]["cached"] > 0


def erlang_c(servers, offered):
    """The probability of waiting in M/M/c (Erlang 1917)."""
    sums = sum(offered**k / math.factorial(k) for k in range(servers))
    last = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return last / (sums + last)


def test_waiting_agrees_with_erlang_c():
    servers, use, mean, step, count = 3, 0.7, 25, 0.01, 4000
    numbers, kind = (
        random.Random(4),
        Kind(name="x", per_minute=1.0, prompt_tokens=1, answer_tokens=1),
    )
    rate = use * servers / (mean * step)
    starts = itertools.accumulate(numbers.expovariate(rate) for _ in range(count))
    talks = [
        Conversation(
            str(i),
            kind,
            start,
            (Turn(1, max(1, round(numbers.expovariate(1 / mean))), 0),),
        )
        for i, start in enumerate(starts)
    ]
    plan = Plan(
        replicas=1,
        failures=(),
        kinds=(kind,),
        options=EngineOptions(max_num_seqs=servers, state_bytes=2**40),
        speed=Speed(step=step, prompt_token=0.0, attended=0.0, row=0.0),
    )
    done = Fleet(plan, small.config(), True, True).run(talks)
    # A request waits for a step to end, then its first token takes one.
    waits = sum(each.first for each in done) / count - 1.5 * step
    wanted = erlang_c(servers, use * servers) * mean * step / (servers * (1 - use))
    assert waits == pytest.approx(wanted, rel=0.15)


def test_a_fleet_that_is_down_answers_when_it_is_back():
    plan = dataclasses.replace(PLAN, replicas=1, failures=((0, 0.0, 40.0),))
    done = simulate.simulate(plan, small.config())["all"]
    talks = traffic.conversations(
        KINDS, 30.0, 0, burst=PLAN.burst, burst_seconds=PLAN.burst_seconds
    )
    assert sum(each.first > 10 for each in done) >= len(talks)


def test_numbers_and_picture():
    assert simulate.quantiles([]) == {"p50": 0.0, "p90": 0.0, "p99": 0.0}
    assert simulate.quantiles(range(1, 101)) == {"p50": 50, "p90": 90, "p99": 99}
    assert waiting.histogram([0.05, 0.1, 0.3, 1000.0]) == [2, 0, 1, *[0] * 7, 1]
    done = [simulate.Done("short", 0.3, 2.0, 100, 50, 0, 2)]
    found = simulate.summary(done, KINDS)
    assert found["short"]["rerouted"] == found["short"]["requests"] == 1
    assert found["short"]["cached"] == 0.5
    assert found["long"]["requests"] == 0
    console = Console(width=100, file=io.StringIO())
    console.print(waiting.picture({"all": done}, KINDS))
    text = console.file.getvalue()
    assert "<= 0.5 s ██" in text
    assert "100.0%" in text


def test_plans_that_mean_nothing_are_refused():
    with pytest.raises(RequestError, match="replicas must be at least 1: got 0"):
        Plan(replicas=0)
    with pytest.raises(RequestError, match="a failure is"):
        Plan(failures=((9, 0.0, 1.0),))
    with pytest.raises(RequestError, match="a positive duration and rates from 0"):
        traffic.conversations(KINDS, 0.0, 0)
