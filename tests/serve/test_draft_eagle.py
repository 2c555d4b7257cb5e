"""EAGLE-3 in the engine: the target's text, whatever the draft and the cache do."""

import pytest
import torch
from serving import engine, request, run, same
from small import config, model

from k3.config.draft import DraftConfig
from k3.errors import RequestError
from k3.kernels.sample import SampleOptions
from k3.model.draft import Draft, features
from k3.serve.draft import Chance
from k3.serve.draft_eagle import EagleDraft
from k3.serve.features import Trace

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def net():
    return model(made=config(attn_res_block_size=1))


@pytest.fixture(scope="module")
def eagle(net):
    draft = Draft(DraftConfig(text=net.config.text), torch.float32).start_(net)
    return EagleDraft(draft.requires_grad_(False))


def traced(net, eagle, context):
    """The trace of a sequence whose last token has not been run."""
    taps, trace = {}, Trace()
    with torch.no_grad():
        net(torch.tensor([context[:-1]]), taps=taps)
    trace.see(0, features(taps, eagle.reads)[0])
    return trace


def assert_same(got, want):
    assert set(got) == set(want)
    for key, outputs in got.items():
        same(outputs, want[key])


def test_it_proposes_what_its_unroll_says(net, eagle):
    """Two rounds: the second runs again from features what the first proposed."""
    context = [5, 9, 2, 40, 11]
    chance = Chance(SampleOptions(temperature=0.0), torch.Generator())
    trace = traced(net, eagle, context)
    (made,) = eagle.propose_from([trace], [context], 3, [chance])
    said, taps = [*context, *made.ids], {}
    with torch.no_grad():
        net(torch.tensor([said]), taps=taps)
        read = features(taps, eagle.reads)
        steps = eagle.draft.unroll(torch.tensor([said]), read, (len(said),), 3)
    assert made.probs is None
    assert list(made.ids) == [int(step[0, 3].argmax()) for step in steps]
    assert trace.cache.lens == (4,)
    trace.see(4, read[0, 4:6])
    (again,) = eagle.propose_from([trace], [said[:7]], 1, [chance])
    assert again.ids == (int(steps[0][0, 5].argmax()),)


TEXTS = [[5, 9, 2, 40, 11, 3, 8], [7, 7, 1], [*range(50)], [30, 2, 2, 9]]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_rows_of_a_pass_are_drafted_as_each_alone(net, eagle, temperature):
    """Of any length, with a long one; then other rows in another order go on."""
    rule = SampleOptions(temperature=temperature)

    def chances(rows):
        return [Chance(rule, torch.Generator().manual_seed(r)) for r in rows]

    def rounds(groups):
        traces = [traced(net, eagle, text[:-1]) for text in TEXTS]
        made = {}
        for at, rows in groups:
            if at:
                for r in rows:
                    put(net, eagle, traces[r], TEXTS[r])
            texts = [TEXTS[r] if at else TEXTS[r][:-1] for r in rows]
            used = [traces[r] for r in rows]
            found = eagle.propose_from(used, texts, 3, chances(rows))
            made |= {(at, r): p for r, p in zip(rows, found, strict=True)}
        return made

    got = rounds([(0, [0, 1, 2, 3]), (1, [3, 0, 2])])
    want = rounds([*((0, [r]) for r in range(4)), *((1, [r]) for r in (0, 2, 3))])
    assert set(got) == set(want)
    for key, proposal in got.items():
        assert proposal.ids == want[key].ids
        assert len(proposal.ids) == 3
        if temperature:
            assert torch.allclose(proposal.probs, want[key].probs, atol=1e-5)


def put(net, eagle, trace, text):
    """Let the target run one token more of a sequence."""
    taps = {}
    with torch.no_grad():
        net(torch.tensor([text[:-1]]), taps=taps)
    trace.see(trace.end, features(taps, eagle.reads)[0, trace.end :])


def test_a_row_that_was_forked_is_its_own(net, eagle):
    chance = Chance(SampleOptions(temperature=0.0), torch.Generator())
    trace = traced(net, eagle, TEXTS[0][:-1])
    eagle.propose_from([trace], [TEXTS[0][:-1]], 2, [chance])
    other = trace.fork()
    put(net, eagle, other, TEXTS[0])
    eagle.propose_from([other], [TEXTS[0]], 2, [chance])
    assert trace.cache.lens == (5,)
    assert other.cache.lens == (6,)


def test_a_reduced_vocabulary_is_mapped(net):
    options = {"draft_vocab_size": 4}
    draft = Draft(DraftConfig(text=net.config.text, **options), torch.float32)
    draft.d2t.copy_(torch.tensor([0, 2, 5, 6]))
    small = EagleDraft(draft.start_(net).requires_grad_(False))
    context = [5, 9, 2]
    chance = Chance(SampleOptions(temperature=1.0), torch.Generator().manual_seed(1))
    trace = traced(net, small, context)
    (made,) = small.propose_from([trace], [context], 5, [chance])
    assert set(made.ids) <= {0, 3, 7, 9}
    assert made.probs.shape == (5, 61)
    assert torch.allclose(made.probs.sum(-1), torch.ones(5, dtype=made.probs.dtype))
    assert made.probs[:, [0, 3, 7, 9]].sum() == pytest.approx(5)


@pytest.mark.parametrize("k", [1, 3])
def test_greedy_text_is_that_without_a_draft(net, eagle, k):
    asked = [request(name, n, temperature=0.0) for name, n in (("a", 9), ("b", 37))]
    plain = run(engine(net), asked)
    made = engine(net, draft=eagle, num_speculative_tokens=k)
    assert_same(run(made, asked), plain)
    assert made.counts.drafted_tokens > 0
    # Again: the prompts come from the cache, and their features are gone.
    assert_same(run(made, asked), plain)


def test_samples_of_one_request_have_traces_of_their_own(net, eagle):
    asked = [request("n", 18, n=3, temperature=0.0)]
    got = run(engine(net, draft=eagle, num_speculative_tokens=2), asked)
    assert_same(got, run(engine(net), asked))


def test_a_gap_begins_anew():
    trace = Trace()
    trace.see(0, torch.zeros(3, 2))
    assert trace.take().shape == (3, 2)
    assert trace.take() is None
    trace.cache = object()
    trace.see(3, torch.zeros(1, 2))
    assert trace.cache is not None
    trace.see(9, torch.ones(2, 2))
    assert (trace.end, trace.cache) == (11, None)
    assert trace.take().tolist() == [[1.0, 1.0]] * 2


def test_without_features_nothing_is_proposed(eagle):
    chance = Chance(SampleOptions(), torch.Generator())
    assert eagle.propose([[1, 2]], 3)[0].ids == ()
    assert eagle.propose_from([Trace()], [[1, 2]], 3, [chance])[0].ids == ()


def test_another_models_tokens_are_refused(eagle):
    with pytest.raises(RequestError, match="its target's tokens, 61 of them: got"):
        eagle.check(62)
