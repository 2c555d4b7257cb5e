"""Paused trajectories in the prefix cache: kept, and found by their weights alone."""

import itertools

import pytest
import torch
from serving import CACHE, engine
from small import config, ids, model, schedule

from k3.errors import RequestError
from k3.post.engine import EngineSampler, SamplerOptions
from k3.serve.overflow import Overflow
from k3.train.rollout import RolloutOptions, Rollouts

FOUR = config(num_hidden_layers=4, linear=schedule(4))
pytestmark = pytest.mark.usefixtures("unchecked")
GREEDY = SamplerOptions(temperature=0.0, ignore_eos=True)


@pytest.fixture
def net():
    return model(made=FOUR)


def sampler(net, options=GREEDY, **limits):
    return EngineSampler(engine(net, **limits), options)


def write(made, key, tokens, count):
    """Go on by so many tokens and pause; what was taken from the cache."""
    made.submit(key, tokens, 100)
    text, cached = list(tokens), None
    while len(text) < len(tokens) + count:
        for output in made.engine.step():
            cached = output.cached_tokens if cached is None else cached
            text += [token.id for token in output.tokens]
    made.pause(key)
    return text, cached


def chain_of(made, tokens):
    return made.engine.cache.chain(tokens, spoken=True)


def change(net):
    with torch.no_grad():
        net.language_model.lm_head.weight.mul_(1.25)


@pytest.mark.parametrize("disk", [False, True])
def test_what_is_paused_is_run_again_from_the_last_boundary_alone(net, disk, tmp_path):
    folder = {"cache_dir": str(tmp_path), "weights": "w"} if disk else {}
    made = sampler(net, **folder)
    text, _ = write(made, "a", ids(20).tolist(), 30)
    assert made.engine.pause("nobody") == 0
    if disk:
        made.engine.cache.clear()
    _, cached = write(made, "a", text, 1)
    assert cached == 48
    assert made.engine.snapshot().prefix_loads == disk


def test_a_crowd_does_not_drive_out_what_is_paused_before_what_is_not(net):
    """Its checkpoint is kept as that of a turn when it goes on and is paused again."""
    made = sampler(net)
    text, _ = write(made, "a", ids(20).tolist(), 30)
    longer, cached = write(made, "a", text, 30)
    assert cached == 48
    index, chain = made.engine.cache.index, chain_of(made, longer)
    turns = [
        at * CACHE.hash_tokens
        for at, key in enumerate(chain.keys, 1)
        if any(group.get(key) and group[key].turn for group in index.groups)
    ]
    assert set(turns) >= {48, 64}


@pytest.mark.parametrize("disk", [False, True])
def test_after_an_update_no_state_of_old_weights_is_read(net, disk, tmp_path):
    folder = {"cache_dir": str(tmp_path), "weights": "w"} if disk else {}
    made = sampler(net, **folder)
    text, _ = write(made, "a", ids(20).tolist(), 30)
    old = chain_of(made, text)
    change(net)
    made.update()
    assert made.engine.cache.matched(chain_of(made, text)) == 0
    with pytest.raises(RequestError, match="keys belong to the weights they were made"):
        made.engine.cache.restore(old)
    got, cached = write(made, "a", text, 20)
    assert cached == 0
    fresh, _ = write(sampler(net), "a", text, 20)
    assert got == fresh
    assert made.engine.snapshot().prefix_loads == 0
    _, cached = write(made, "a", got, 1)
    assert cached == 64


def test_old_weights_leave_no_room_taken_on_disk(net, tmp_path):
    made = sampler(net, cache_dir=str(tmp_path), weights="w")
    write(made, "a", ids(20).tolist(), 30)
    change(net)
    made.update(name="v1")
    made.engine.cache.overflow.close()
    disk = Overflow(tmp_path)
    with disk._env.begin() as transaction:
        assert transaction.stat()["entries"] == 0
    disk.close()


def test_another_process_with_the_same_weights_goes_on(net, tmp_path):
    made = sampler(net, cache_dir=str(tmp_path), weights="w")
    made.update(name="v1")
    text, _ = write(made, "a", ids(20).tolist(), 30)
    want, _ = write(made, "a", text, 10)
    made.engine.cache.overflow.close()
    again = sampler(net, cache_dir=str(tmp_path), weights="v1")
    got, cached = write(again, "a", text, 10)
    assert (got, cached) == (want, 48)


def test_weights_that_change_in_silence_are_refused(net):
    made = sampler(net)
    write(made, "a", ids(20).tolist(), 3)
    change(net)
    made.submit("a", ids(20).tolist(), 3)
    with pytest.raises(RequestError, match="changed since version 0 began to sample"):
        made.step()
    made.update()
    assert made.step() == []
    assert len(made.step()) == 1


class Long:
    """An episode of one turn."""

    def __init__(self, number):
        self.number = number

    def begin(self):
        return ids(4 + 5 * self.number, seed=self.number).tolist()

    def reply(self, written):
        return None

    def reward(self):
        return 0.5


def rollouts(made, most, **options):
    numbers = itertools.count()

    def more():
        number = next(numbers)
        return f"p{number}", lambda: Long(number)

    return Rollouts(made, more, RolloutOptions(max_tokens=most, **options))


def watch(made):
    """What is active and the bytes held after each step of an engine."""
    seen, step = [], made.step

    def watched():
        outputs = step()
        seen.append((len(made.short.active), made.snapshot().state_bytes))
        return outputs

    made.step = watched
    return seen


@pytest.mark.parametrize("growth", [64, 1])
def test_memory_throttles_and_nothing_fails_or_is_lost(net, growth):
    """Room for three: with little room to grow the engine takes back, and goes on."""
    options = SamplerOptions(temperature=0.0, ignore_eos=True, growth=growth)
    bytes_at = engine(net).bytes_at
    found, most = {}, {}
    for budget in (2**30, 3 * bytes_at(70)):
        made = sampler(
            net,
            options,
            max_num_seqs=8,
            state_bytes=budget,
            max_num_batched_tokens=64,
        )
        seen = watch(made.engine)
        groups = rollouts(made, 40, prompts=4, samples=2, share=1.0).iterate()
        found[budget] = {t.key: t.tokens for group in groups for t in group}
        most[budget] = max(active for active, _ in seen)
        assert max(held for _, held in seen) <= budget
    few, many = sorted(most)
    assert found[few] == found[many]
    assert len(found[few]) == 8
    assert most[few] <= 3 < most[many]
