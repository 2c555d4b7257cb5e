"""Prompts that come together and start alike; where chains part."""

import pytest
from serving import engine, request, run, same
from small import config, model, schedule

from k3.serve.prompts import common

pytestmark = pytest.mark.usefixtures("unchecked")


def test_common_counts_the_keys_before_two_chains_part():
    a = [bytes([i]) for i in range(9)]
    for n in range(10):
        b = [*a[:n], *(bytes([99 + i]) for i in range(5))]
        assert common(a, b) == n
        assert common(b, a) == n
    assert common([], a) == 0


def test_the_same_start_is_run_once():
    """Six prompts share 64 tokens and come at once: five restore them."""
    net = model(made=config(num_hidden_layers=4, linear=schedule(4)))
    start = request("start", 64).tokens
    asked = [
        request(name, tokens=(*start, *request(name, 3 + 5 * i).tokens))
        for i, name in enumerate("abcdef")
    ]
    made = engine(net, max_num_seqs=8, max_num_batched_tokens=200)
    got = run(made, asked)
    assert [got[one.id, 0][0].cached_tokens for one in asked] == [0, *[64] * 5]
    for one in asked:
        same(got[one.id, 0], run(engine(net), [one])[one.id, 0])


def test_nobody_waits_for_what_is_already_stored():
    """A prompt that is run whole for its scores does not hold up one that hits."""
    net = model(made=config(num_hidden_layers=4, linear=schedule(4)))
    start = request("start", 96)
    made = engine(net)
    run(made, [start])
    scored = request("a", tokens=start.tokens, prompt_logprobs=0, max_tokens=1)
    hit = request("b", tokens=(*start.tokens, 3), max_tokens=1)
    made.add(scored)
    made.add(hit)
    assert [o.request_id for o in made.step() if o.finish] == ["b"]
    assert [o.finish for o in run(made)["a", 0]] == ["length"]
