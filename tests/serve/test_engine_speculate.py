"""Drafts in the engine: nothing of what was rejected is left anywhere."""

import pytest
import torch
from serving import engine, request, run, same, tokens
from small import config, model, schedule, state_gap

from k3.serve.draft import NGramDraft, Proposal

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def net():
    return model(made=config(num_hidden_layers=4, linear=schedule(4)))


class Fixed:
    """A draft that proposes what a function says of each context."""

    def __init__(self, say):
        self.say = say

    def propose(self, contexts, k, chances=()):
        return [Proposal(tuple(self.say(context, k))) for context in contexts]

    def check(self, vocab_size):
        pass


@torch.no_grad()
def greedy(net, context, k):
    ids = list(context)
    for _ in range(k):
        ids.append(int(net(torch.tensor([ids]))[0, -1].argmax()))
    return ids[len(context) :]


def wrong(net):
    """Never what a greedy sequence goes on with."""
    return Fixed(lambda c, k: [(x + 1) % 57 for x in greedy(net, c, 1)] * k)


def cached_states(net, made, prompt, said):
    """The longest state that is stored of these tokens, and a cold one."""
    chain = made.cache.chain(prompt).extend(said, generated=True)
    state, cached = made.cache.restore(chain)
    with torch.no_grad():
        ids = torch.tensor([chain.tokens[:cached]])
        _, cold = net(ids, state=net.init_state(1))
    return state, cold, cached


def test_report_4_an_always_wrong_draft_leaves_no_trace(net):
    """A, B, A again and a sibling of A: as without a draft and without a cache."""
    made = engine(net, draft=wrong(net), num_speculative_tokens=3)
    a, b = request("a", 40, temperature=0.0), request("b", 41, temperature=0.0)
    changed = (*a.tokens[:33], *request("s", 9).tokens)
    sibling = request("s", tokens=changed, temperature=0.0, max_tokens=20)
    for asked in (a, b, a, sibling):
        got = run(made, [asked])[asked.id, 0]
        same(got, run(engine(net, cache=None), [asked])[asked.id, 0])
        said = [t.id for t in tokens(got)]
        state, cold, cached = cached_states(net, made, asked.tokens, said)
        assert cached >= (len(asked.tokens) + len(said)) // 16 * 16 - 16
        assert state_gap(state, cold) <= 1e-5
    counted = made.snapshot()
    assert counted.drafted_tokens > 100
    assert counted.accepted_tokens == 0


@pytest.mark.parametrize("kind", ["right", "wrong", "lookup"])
def test_greedy_text_is_that_without_a_draft(net, kind, monkeypatch):
    made_of = {
        "right": Fixed(lambda c, k: greedy(net, c, k)),
        "wrong": wrong(net),
        "lookup": NGramDraft(),
    }
    made = engine(net, draft=made_of[kind], num_speculative_tokens=3)
    asked = [request(x, 5 + 9 * i, temperature=0.0) for i, x in enumerate("abc")]

    def each(step):
        for part in made.short.batch.parts:
            room = len(part.rows) * made.bytes_at(max(part.state.lens))
            assert part.state.nbytes <= room
        if step == 3:
            made.short.send_back(made.short.active[0])

    got = run(made, asked, each=each)
    for one in asked:
        same(got[one.id, 0], run(engine(net), [one])[one.id, 0])
    counted = made.snapshot()
    if kind == "right":
        assert counted.accepted_tokens == counted.drafted_tokens > 15
        assert counted.steps < 12
