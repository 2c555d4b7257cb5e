"""Drafting changes how fast tokens come, never which, and leaves no wrong state."""

import pytest
import torch
from drafting import Scripted, prefilled, sequence
from even import Even
from serving import CACHE, engine, request, run, same, tokens
from small import config, gap, ids, model, schedule, state_gap

from k3.errors import RequestError
from k3.model.generate import generate
from k3.serve import accept, speculate
from k3.serve.draft import Proposal
from k3.serve.speculate import ModelDraft, NGramDraft

FOUR = config(num_hidden_layers=4, linear=schedule(4))
K = 4
pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def net():
    return model(made=FOUR)


def greedy(name, length, count=12, **options):
    return request(name, length, temperature=0.0, max_tokens=count, **options)


def text(net, asked):
    """Prompt and greedy continuation, with more than is asked for."""
    from dataclasses import replace

    longer = replace(asked.options, max_tokens=asked.options.max_tokens + 8)
    return [*asked.tokens, *generate(net, [asked.tokens], longer)[0].ids]


def drafting(net, draft, **options):
    return engine(net, draft=draft, num_speculative_tokens=K, **options)


@pytest.mark.parametrize("cache", [None, CACHE])
@pytest.mark.parametrize("kind", ["lookup", "itself", "another"])
def test_greedy_text_is_that_without_a_draft(net, kind, cache):
    draft = {
        "lookup": lambda: NGramDraft(1, 3),
        "itself": lambda: ModelDraft(net),
        "another": lambda: ModelDraft(model(made=FOUR, seed=6)),
    }[kind]()
    asked = [greedy("a", 20, 15), greedy("b", 5, 9), greedy("c", 33, 17, n=2)]
    asked += [greedy("d", 1, 11), greedy("e", 50, 3)]
    want = run(engine(net, cache=cache), asked)
    made = drafting(net, draft, cache=cache)
    got = run(made, asked)
    for each in want:
        same(got[each], want[each])
    counted = made.snapshot()
    assert counted.drafted_tokens == sum(o.drafted for x in got.values() for o in x)
    assert counted.accepted_tokens == sum(o.accepted for x in got.values() for o in x)
    if kind == "itself":
        assert counted.accepted_tokens == counted.drafted_tokens > 0


def test_report_14_each_count_of_accepted_tokens_leaves_plain_states(net):
    """Rows of three lengths accept 0 .. 4, each its own, over block edges too."""
    asked = [greedy(name, n, 40) for name, n in (("a", 14), ("b", 3), ("c", 30))]
    rows = [sequence(one) for one in asked]
    texts = [text(net, one) for one in asked]
    each = [[(n + i) % (K + 1) for i in range(3)] for n in (0, 4, 1, 3, 2)]
    plain = [prefilled(net, [row], speculate.keep_inputs(K)) for row in rows]
    draft = Scripted(texts, each)
    state = prefilled(net, rows, speculate.keep_inputs(K))
    for right in each:
        before = [len(s) for s in rows]
        state, blocks = speculate.decode(net, state, rows, draft, K)
        assert [b.accepted for b in blocks] == right
        assert [b.emitted for b in blocks] == [n + 1 for n in right]
        for row, s in enumerate(rows):
            assert s.chain.tokens == texts[row][: before[row] + right[row] + 1]
            for token in s.chain.tokens[before[row] - 1 : -1]:
                _, plain[row] = net.step(torch.tensor([[token]]), plain[row])
            mine, want = state.select([row]), plain[row].fork()
            assert state_gap(mine, want) < 1e-5
            last = torch.tensor([s.chain.tokens[-1:]])
            assert gap(net.step(last, mine)[0], net.step(last, want)[0]) < 1e-5


def test_report_4_wrong_drafts_leave_nothing_in_the_prefix_cache(net):
    """A, B, A again and a sibling of A, k = 3, blocks of 16, always wrong."""
    first, other = greedy("a", 37, 20), greedy("b", 45, 20)
    asked = [first, other, greedy("A", 0, 20, tokens=first.tokens)]
    asked.append(greedy("s", 0, 20, tokens=(*first.tokens[:33], 1, 2, 3)))
    texts = [text(net, one) for one in asked]
    made = engine(net, draft=Scripted(texts, [0]), num_speculative_tokens=3)
    for one, whole in zip(asked, texts, strict=True):
        got = run(made, [one])[one.id, 0]
        want = run(engine(net, cache=None), [one])[one.id, 0]
        same(got, want)
        assert sum(o.accepted for o in got) == 0
        chain = made.cache.chain(whole[: len(one.tokens) + 20])
        held, cached = made.cache.restore(chain)
        assert cached >= len(one.tokens) // 16 * 16
        alone = net(torch.tensor([whole[:cached]]), state=net.init_state(1))[1]
        assert state_gap(held, alone) < 1e-5
    assert made.snapshot().prefix_hits > 0


def test_drafts_that_jump_over_a_boundary_store_it(net):
    """Rounds of five tokens end behind 48 and 64: a repeat finds both."""
    asked = greedy("a", 37, 30)
    beside = greedy("z", 9, 30)
    texts = [text(net, asked), text(net, beside)]
    made = drafting(net, Scripted(texts, [4]))
    got = run(made, [asked, beside])
    assert [t.id for t in tokens(got["a", 0])] == texts[0][37:67]
    for count in (49, 66):
        chain = made.cache.chain(asked.tokens).extend(
            texts[0][37:count], generated=True
        )
        assert made.cache.restore(chain)[1] == count // 16 * 16


def test_sampled_text_does_not_depend_on_the_batch(net):
    asked = [request(n, size, temperature=1.0) for n, size in (("a", 9), ("b", 30))]
    asked.append(request("c", 17, temperature=0.7, top_k=20, n=2))
    draft = model(made=FOUR, seed=6)
    together = run(drafting(net, ModelDraft(draft)), asked)
    for one in asked:
        alone = run(drafting(net, ModelDraft(draft)), [one])
        for each in alone:
            same(together[each], alone[each])
    assert sum(o.accepted for x in together.values() for o in x) > 0


class Noise:
    """Proposes tokens of any kind, as many as it is asked for."""

    def check(self, vocab_size):
        """It is for any model."""

    def propose(self, contexts, k, chances):
        last = [sum(context) for context in contexts]
        return [Proposal(tuple((n * 7 + 2 * i) % 57 for i in range(k))) for n in last]


@pytest.mark.parametrize("kind", ["noise", "truth"])
def test_a_constraint_sees_only_what_it_allows_and_goes_back(net, kind):
    asked = greedy("a", 20, 12, constraint=Even(9))
    want = run(engine(net, cache=None), [asked])["a", 0]
    draft = Noise()
    if kind == "truth":
        said = [t.id for t in tokens(want)]
        draft = Scripted([[*asked.tokens, *said, *[0] * 9]], [4, 2])
    got = run(drafting(net, draft, cache=None), [asked])["a", 0]
    same(got, want)
    assert got[-1].finish == "stop"
    assert len(tokens(got)) == 9
    assert (sum(o.accepted for o in got) > 0) == (kind == "truth")


def test_stops_and_lengths_end_inside_a_block(net):
    plain = greedy("a", 20, 12)
    texts = [text(net, plain)]
    stop = texts[0][20 + 6]
    ended = greedy("a", 20, 12, stop_ids=(stop,))
    for asked in (plain, ended, greedy("a", 20, 1), greedy("a", 20, 7)):
        want = run(engine(net), [asked])["a", 0]
        made = drafting(net, Scripted(texts, [4]))
        got = run(made, [asked])["a", 0]
        same(got, want)
        assert made.snapshot().generation_tokens == len(tokens(want))


def test_lookup_takes_the_longest_and_latest_match():
    draft = NGramDraft(1, 3)
    found = draft.propose([[1, 2, 3, 9, 7, 3, 8, 1, 2, 3], [1, 2, 3], [5]], 2)
    assert [p.ids for p in found] == [(9, 7), (), ()]
    assert draft.propose([[4, 3, 9, 3, 8, 3]], 3)[0].ids == (8, 3)
    assert draft.propose([[256, 1, 0, 256]], 1)[0].ids == (1,)
    assert NGramDraft(2, 4).propose([[4, 3, 9, 5, 3]], 3)[0].ids == ()
    with pytest.raises(RequestError, match="at least 1 token: got 3 to 2"):
        NGramDraft(3, 2)


def test_a_draft_model_runs_only_what_is_new(net, monkeypatch):
    draft, ran = ModelDraft(net), []
    forward = net.forward

    def counted(ids, **options):
        ran.append(ids.numel())
        return forward(ids, **options)

    monkeypatch.setattr(net, "forward", counted)
    monkeypatch.setattr(net, "step", lambda ids, state: counted(ids, state=state))
    contexts = [ids(20, seed=1).tolist(), ids(30, seed=2).tolist()]
    first = draft.propose(contexts, 3)
    assert sum(ran) == 20 + 30 + 2 * 2
    ran.clear()
    contexts[0] += [*first[0].ids, 5]
    contexts[1] += [first[1].ids[0], 6]
    contexts.reverse()
    again = draft.propose(contexts, 3)
    assert sum(ran) == (2 + 1) + 2 * 2
    fresh = ModelDraft(net).propose(contexts, 3)
    assert [p.ids for p in again] == [p.ids for p in fresh]


def test_report_59_k_proposals_take_k_plus_1_rows_and_each_counts(net, monkeypatch):
    """A wrong proposal at a place ends the round there, and nowhere else."""
    asked, real, seen = greedy("a", 20, 15), speculate._decide, []
    want = run(engine(net), [asked])

    def spy(blocks, logits):
        real(blocks, logits)
        seen.extend((b.drafted, logits.shape[1], b.accepted) for b in blocks)

    monkeypatch.setattr(speculate, "_decide", spy)
    for right in range(K + 1):
        seen.clear()
        got = run(drafting(net, Scripted([text(net, asked)], [right])), [asked])
        for each in want:
            same(got[each], want[each])
        whole = [each for each in seen if each[0] == K]
        assert whole
        assert set(whole) == {(K, K + 1, right)}


def test_what_is_no_draft_for_a_model_is_refused(net):
    small = model(made=config(num_hidden_layers=4, linear=schedule(4), vocab_size=70))
    with pytest.raises(RequestError, match="tokens of its model, 61: got 70"):
        drafting(net, ModelDraft(small))
    with pytest.raises(RequestError, match="got NoneType and 3; give both or none"):
        engine(net, num_speculative_tokens=3)
    with pytest.raises(RequestError, match="got NGramDraft and 0; give both or none"):
        engine(net, draft=NGramDraft())
    with pytest.raises(RequestError, match="from its own law: got token 1 with chance"):
        accept.verify([1], torch.ones(2, 2), torch.tensor([[1.0, 0.0]]), [0.5, 0.5])
