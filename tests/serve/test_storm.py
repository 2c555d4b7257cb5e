"""Everything at once: wrong drafts, tenants, constraints, cancels, new weights."""

import random

import pytest
import torch
from serving import bytes_of, engine, request, run, same, tokens
from small import config, model, schedule

from k3.serve import scheduler
from k3.serve.draft import Proposal

pytestmark = pytest.mark.usefixtures("unchecked")
SEEDS = [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 25))]


@pytest.fixture(scope="module")
def net():
    return model(made=config(num_hidden_layers=4, linear=schedule(4)))


class Noise:
    """A draft that is nearly always wrong."""

    def propose(self, contexts, k, chances=()):
        return [
            Proposal(tuple((sum(context) * 7 + i) % 57 for i in range(k)))
            for context in contexts
        ]

    def check(self, vocab_size):
        pass


class Even:
    """Allows even ids, as many as it is told."""

    def __init__(self, most):
        self.most, self.seen = most, []

    def mask(self):
        return torch.arange(61) % 2 == 0

    def accept(self, token_id):
        assert token_id % 2 == 0
        self.seen.append(token_id)

    def rollback(self, n):
        del self.seen[len(self.seen) - n :]

    def fork(self):
        made = Even(self.most)
        made.seen = list(self.seen)
        return made

    def done(self):
        return len(self.seen) >= self.most


def traffic(seed, count=8):
    """(start, cancelled, request): greedy, with what may meet in one batch."""
    draw = random.Random(seed)
    for i in range(count):
        more = {"constraint": Even(9)} if draw.random() < 0.3 else {}
        asked = request(
            f"{seed}:{i}",
            draw.choice([1, 15, 16, 33, 64]),
            n=draw.choice([1, 1, 2]),
            max_tokens=draw.randint(1, 20),
            temperature=0.0,
            salt=draw.choice([b"", b"one", b"two"]),
            **more,
        )
        cancelled = draw.randrange(60) if draw.random() < 0.3 else None
        yield draw.randrange(25), cancelled, asked


@pytest.mark.parametrize("seed", SEEDS)
def test_a_storm_changes_no_answer(net, seed, monkeypatch):
    monkeypatch.setattr(scheduler, "HEADROOM_TOKENS", 0)
    made = engine(
        net,
        draft=Noise(),
        num_speculative_tokens=3,
        state_bytes=bytes_of(net, 7, 84),
        max_num_batched_tokens=40,
    )
    plan, draw = list(traffic(seed)), random.Random(seed)

    def each(step):
        for start, cancelled, asked in plan:
            if start == step:
                made.add(asked)
            if cancelled == step:
                made.cancel(asked.id)
        if draw.random() < 0.1:
            net.weight_version += 1
        if draw.random() < 0.1:
            made.reset_prefix_cache()
        if made.short.active and draw.random() < 0.2:
            made.short.send_back(draw.choice(made.short.active))

    keep = request("keep", 5, max_tokens=40, temperature=0.0)
    got = run(made, [keep], each=each)
    for _, cancelled, asked in [*plan, (0, None, keep)]:
        solo = run(engine(net, cache=None), [asked])
        for index in range(asked.n):
            outputs, want = got.get((asked.id, index), []), solo[asked.id, index]
            if cancelled is None or (outputs and outputs[-1].finish != "abort"):
                same(outputs, want)
            else:
                said = [t.id for t in tokens(outputs)]
                assert said == [t.id for t in tokens(want)][: len(said)]
    counted = made.snapshot()
    assert counted.state_bytes == 0
    assert counted.drafted_tokens > 3 * counted.accepted_tokens
    made.reset_prefix_cache()
    assert made.cache.index.pages.num_used == 0
