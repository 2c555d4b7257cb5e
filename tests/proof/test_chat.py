"""Chat layout: the logic's functions are the spec's."""

import random

import pytest

from k3.logic.falsify import call
from k3.logic.sorts import INT
from k3.proof import chat, chat_calls
from k3.spec import chat as spec

SIZES = [0, 1, 3, 8]


@pytest.mark.parametrize("size", SIZES)
def test_the_layout_keeps_its_prefix(size):
    rng = random.Random(size)
    parts = [
        tuple(rng.randrange(9) for _ in range(rng.randrange(size + 1)))
        for _ in range(4)
    ]
    declared, history, once, other = parts
    ours = call(chat.LAYOUT, [declared, history, once])
    assert list(ours) == spec.layout(declared, history, once)
    kept = len(declared) + len(history)
    first, second = (spec.layout(declared, history, x) for x in (once, other))
    assert first[:kept] == second[:kept] == [*declared, *history]
    assert list(call(chat.TAKE, [kept, ours])) == first[:kept]


@pytest.mark.parametrize("size", SIZES)
def test_calls_and_results_carry_the_same_indices(size):
    calls = tuple(f"call{i}" for i in range(size))
    results = tuple(f"result{i}" for i in range(size))
    symbol = chat_calls.numbered(chat_calls.RESULT)
    ours = call(symbol, [1, results])
    assert list(ours) == spec.indexed(results)
    first, second = spec.indexed(calls), spec.indexed(results)
    assert [i for i, _ in first] == [i for i, _ in second]
    assert list(call(chat_calls.UPTO, [1, size])) == list(range(1, size + 1))
    assert symbol.domain[0] == INT


@pytest.mark.parametrize("mode", ["thinking", "instruct"])
@pytest.mark.parametrize("calls", [0, 1, 4])
def test_the_channels_are_those_of_the_spec(mode, calls):
    names = ["think", "response", "tools"]
    ours = call(chat.CHANNELS, [*names, mode == "thinking", calls > 0])
    assert list(ours) == spec.channels(mode, calls)
    assert ("think" in ours) == (mode == "thinking")
    assert call(chat.HAS, ["think", ours]) == (mode == "thinking")
