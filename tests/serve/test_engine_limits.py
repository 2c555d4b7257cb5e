"""Budgets, queues and limits of the engine, and what is left when all have gone."""

import gc
from collections import Counter

import pytest
import torch
from serving import bytes_of, engine, request, run, tokens
from small import config, model, schedule

from k3.errors import RequestError
from k3.model import DecodeState
from k3.serve.sequence import Sequence

FOUR = config(num_hidden_layers=4, linear=schedule(4))
pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def net():
    return model(made=FOUR)


def test_a_long_prompt_does_not_block_short_ones(net):
    made = engine(net, max_num_seqs=2, long_tokens=100, max_num_long_tokens=8)
    long = request("long", 240, max_tokens=2)
    order = []
    for one in (long, *(request(name, 5, max_tokens=6) for name in "abcd")):
        made.add(one)
    for _ in range(20):
        order += [o.request_id for o in made.step() if o.finish]
    assert sorted(order) == list("abcd")
    assert [o.finish for o in run(made)["long", 0]] == ["", "length"]


def test_requests_wait_when_memory_is_short(net):
    made = engine(net, state_bytes=bytes_of(net, 1, 70))
    got = run(made, [request(name, 30, max_tokens=40) for name in "abc"])
    assert all(outputs[-1].finish == "length" for outputs in got.values())
    assert all(len(tokens(outputs)) == 40 for outputs in got.values())


def test_a_full_queue_refuses(net):
    made = engine(net, max_waiting=2)
    for name in "ab":
        made.add(request(name))
    with pytest.raises(RequestError, match=r"^the queue is full: 2 requests wait"):
        made.add(request("c"))


def test_cancel_frees_everything(net):
    made = engine(net)
    for name in "abcdefg":
        made.add(request(name, 70, n=2))
    for _ in range(6):
        made.step()
    assert made.snapshot().state_bytes > 0
    for name in "abcdefg":
        made.cancel(name)
    assert made.snapshot().state_bytes == 0
    ends = made.step()
    assert [o.finish for o in ends] == ["abort"] * 14
    assert not made.busy
    made.cancel("nobody")


def test_report_97_limits_are_exact(net):
    made = engine(net, max_model_len=50)

    def ends(length, max_tokens):
        got = run(made, [request("a", length, max_tokens=max_tokens)])["a", 0]
        return len(tokens(got)), got[-1].finish

    assert ends(49, 1) == (1, "length")
    assert ends(47, 10) == (3, "length")
    assert ends(1, 10**9) == (49, "length")
    assert ends(20, 0) == (0, "length")
    with pytest.raises(
        RequestError, match=r"fit in 50 tokens: got a prompt of 50; sho"
    ):
        made.add(request("a", 50, max_tokens=1))
    with pytest.raises(RequestError, match=r"max_tokens must be at least 0: got -1"):
        request("a", 5, max_tokens=-1)
    context = config(max_position_embeddings=40)
    assert engine(model(made=context)).limit(3) == 40


def test_a_state_budget_is_a_limit(net):
    made = engine(net, state_bytes=bytes_of(net, 1, 30))
    assert made.limit(5) == 30
    assert len(tokens(run(made, [request("a", 25, max_tokens=99)])["a", 0])) == 5


def test_memory_is_flat_after_cancels(net):
    """Nothing of a request is left behind, whenever it was cancelled."""

    def held():
        gc.collect()
        kinds = Counter(map(type, gc.get_objects()))
        return [kinds[kind] for kind in (torch.Tensor, Sequence, DecodeState)]

    made, counts = engine(net), []
    for seed in range(4):
        for turn in range(12):
            made.add(request(f"{seed}.{turn}", 1 + 13 * (turn % 4), n=1 + turn % 2))
            made.step()
            if turn > 3:
                made.cancel(f"{seed}.{turn - turn % 5}")
        for name in list(made.sequences):
            made.cancel(name)
        while made.busy:
            made.step()
        made.reset_prefix_cache()
        counts.append(held())
        assert made.cache.index.pages.num_used == 0
    assert counts[1:] == counts[:-1]
    assert counts[0][1] == 0
