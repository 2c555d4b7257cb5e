"""Which replica a conversation goes to."""

import json
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3.errors import RequestError
from k3.serve import route

NAMES = ["0", "1", "2", "3", "4"]


def key(**fields):
    return route.prefix_key(json.dumps(fields).encode())


def test_turns_of_a_conversation_share_their_key():
    system = {"role": "system", "content": "Be brief."}
    first = {"role": "user", "content": "Hi"}
    later = [{"role": "assistant", "content": "Ho"}, {"role": "user", "content": "?"}]
    opened = key(model="k3", messages=[system, first])
    assert key(model="k3", messages=[system, first, *later], seed=3) == opened
    assert key(model="k3", messages=[system, {**first, "content": "Hi!"}]) != opened
    assert key(model="k3", messages=[first]) != opened
    assert key(model="k3", messages=[system, first], tools=[{"a": 1}]) != opened


def test_prompts_and_sessions():
    text = "x" * route.PROMPT_CHARACTERS
    assert key(prompt=text + "a") == key(prompt=text + "b") == key(prompt=[text + "c"])
    assert key(prompt=text[1:] + "a") != key(prompt=text[1:] + "b")
    assert key(prompt=list(range(300))) == key(prompt=list(range(301)))
    assert key(prompt=[[1, 2], [3]]) == key(prompt=[1, 2])
    assert route.prefix_key(b"1", "s") == route.prefix_key(b"2", "s")
    assert key(prompt="a", prompt_cache_key="s") == route.prefix_key(b"1", "s")


@given(st.binary(max_size=60))
def test_any_body_has_a_key(body):
    assert len(route.prefix_key(body)) == 32


def test_what_is_no_object_has_a_key_too():
    assert route.prefix_key(b"[1]") != route.prefix_key(b"[2]")
    assert len(route.prefix_key(b"[" * 10000)) == len(key(messages=[7, None]))
    assert key(prompt=None) != key(prompt=[])


def test_an_order_holds_every_replica_and_moves_few_keys():
    ring, smaller = route.Ring(NAMES), route.Ring(NAMES[:-1])
    keys = [str(i) for i in range(2000)]
    orders = {k: ring.order(k) for k in keys}
    assert all(sorted(order) == NAMES for order in orders.values())
    moved = [k for k in keys if smaller.order(k)[0] != orders[k][0]]
    assert all(orders[k][0] == "4" for k in moved)
    assert 0.1 < len(moved) / len(keys) < 0.35
    assert all(smaller.order(k)[0] == orders[k][1] for k in moved)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=5), st.integers(0, 99))
def test_the_first_choice_is_below_its_share_and_first_in_order(counts, seed):
    loads = dict(zip(NAMES, counts, strict=False))
    order = random.Random(seed).sample(NAMES, len(NAMES))
    found = route.choose(order, loads)
    assert sorted(found) == sorted(loads)
    share = route.capacity(sum(counts), len(counts))
    assert loads[found[0]] < share
    up = [name for name in order if name in loads]
    below = [name for name in up if loads[name] < share]
    assert found[: len(below)] == below
    assert found[0] == up[0] or loads[up[0]] >= share


def test_no_replica_takes_more_than_its_bound():
    ring, loads = route.Ring(NAMES), Counter(dict.fromkeys(NAMES, 0))
    for _ in range(400):
        loads[route.choose(ring.order("one hot key"), loads)[0]] += 1
    assert max(loads.values()) <= 1.25 * 400 / 5 + 1
    assert route.choose(ring.order("k"), {}) == []


def test_a_ring_needs_names():
    for names in ([], ["a", "a"]):
        with pytest.raises(RequestError, match="at least one replica, each named once"):
            route.Ring(names)
