"""Trees of candidates: which one is right changes the speed, never the text."""

import pytest
import torch
from drafting import FixedTree, chi_square, expected, pairs, prefilled, sequence
from even import Even
from serving import CACHE, engine, request, run, same, tokens
from small import config, gap, model, schedule, state_gap

from k3.config.draft import DraftConfig
from k3.kernels.sample import SampleOptions
from k3.model.draft import Draft, features
from k3.model.generate import generate
from k3.serve import accept, speculate
from k3.serve.block import Block, constrain
from k3.serve.draft import Chance, Proposal
from k3.serve.draft_eagle import EagleDraft
from k3.serve.features import Trace
from k3.serve.tree import Tree

FOUR = config(num_hidden_layers=4, linear=schedule(4))
TREE = Tree.of([2, 2, 1])
pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def net():
    return model(made=FOUR)


class Right:
    """Proposes the true text along one path of the tree, and lies beside it."""

    def __init__(self, texts, leads):
        self.texts, self.leads, self.rounds = texts, leads, 0

    def check(self, vocab_size):
        """It is for any model."""

    def propose(self, contexts, k, chances):
        lead = self.leads[self.rounds % len(self.leads)]
        self.rounds += 1
        return [self._one(context, TREE.cut(k), lead) for context in contexts]

    def _one(self, context, tree, lead):
        text = next(t for t in self.texts if t[: len(context)] == context)
        true, ids = text[len(context) :], []
        made = Proposal(tuple(tree.parents), None, tree.parents)
        for node in range(len(tree.parents)):
            path = made.path(node)
            right = path == lead[: len(path)]
            token = true[len(path) - 1]
            ids.append(token if right else (token + 1 + node) % 57)
        return Proposal(tuple(ids), None, tree.parents)


LEADS = [[0, 2, 6], [1, 5, 9], [1, 4], [0], [], [0, 3, 7]]


def greedy(name, length, count=14, **options):
    return request(name, length, temperature=0.0, max_tokens=count, **options)


def text(net, asked):
    from dataclasses import replace

    longer = replace(asked.options, max_tokens=asked.options.max_tokens + 8)
    return [*asked.tokens, *generate(net, [asked.tokens], longer)[0].ids]


@pytest.mark.parametrize("cache", [None, CACHE])
def test_greedy_text_is_that_without_a_draft(net, cache):
    asked = [greedy("a", 20, 15), greedy("b", 1, 9), greedy("c", 33, 17, n=2)]
    draft = Right([text(net, one) for one in asked], LEADS)
    made = engine(net, draft=draft, num_speculative_tokens=3, cache=cache)
    got, want = run(made, asked), run(engine(net, cache=cache), asked)
    for each in want:
        same(got[each], want[each])
    counted = made.snapshot()
    assert 0 < counted.accepted_tokens < counted.drafted_tokens
    assert counted.drafted_tokens == sum(o.drafted for x in got.values() for o in x)


@pytest.mark.parametrize("lead", LEADS)
def test_what_stays_is_the_path_and_its_state(net, lead):
    """Another path is right for each row; states are those of plain decoding."""
    asked = [greedy(name, n) for name, n in (("a", 14), ("b", 3), ("c", 30))]
    rows, texts = [sequence(one) for one in asked], [text(net, one) for one in asked]
    plain = [prefilled(net, [row], 4) for row in rows]
    state = prefilled(net, rows, 4)
    draft = Right(texts, [lead])
    for _ in range(2):
        before = [len(s) for s in rows]
        state, blocks = speculate.decode(net, state, rows, draft, 3)
        assert [b.accepted for b in blocks] == [len(lead)] * 3
        for row, s in enumerate(rows):
            assert s.chain.tokens == texts[row][: before[row] + len(lead) + 1]
            for token in s.chain.tokens[before[row] - 1 : -1]:
                _, plain[row] = net.step(torch.tensor([[token]]), plain[row])
            mine, want = state.select([row]), plain[row].fork()
            assert state_gap(mine, want) < 1e-5
            last = torch.tensor([s.chain.tokens[-1:]])
            assert gap(net.step(last, mine)[0], net.step(last, want)[0]) < 1e-5


def test_a_constraint_prunes_the_tree_and_goes_back(net):
    asked = greedy("a", 20, 12, constraint=Even(9))
    want = run(engine(net, cache=None), [asked])["a", 0]
    said = [t.id for t in tokens(want)]
    draft = Right([[*asked.tokens, *said, *[0] * 9]], LEADS)
    made = engine(net, draft=draft, num_speculative_tokens=3, cache=None)
    got = run(made, [asked])["a", 0]
    same(got, want)
    assert (got[-1].finish, len(tokens(got))) == ("stop", 9)
    assert sum(o.accepted for o in got) > 0


@pytest.mark.parametrize("certain", [True, False])
def test_what_is_drawn_and_ruled_out_stays_to_be_rejected(certain):
    """Nodes 1 and 2 are odd; 4 follows one of them, 5 the end of the constraint."""
    s = sequence(request("x", 3, constraint=Even(2)))
    probs = None if certain else torch.full((7, 61), 1 / 61)
    made = Proposal((2, 3, 5, 8, 10, 12, 7), probs, (-1, -1, 0, 0, 1, 3, 0))
    block = Block(s, made)
    constrain(block)
    if certain:
        assert block.proposal.ids == (2, 8)
        assert block.proposal.parents == (-1, 0)
    else:
        assert block.proposal.ids == (2, 3, 5, 8, 7)
        assert block.proposal.parents == (-1, -1, 0, 0, 0)
        assert len(block.proposal.probs) == 5
    told = [mask is not None for mask in block.masks]
    assert told == [True, True, *[False] * (len(told) - 2)]
    assert s.constraint.seen == []


@pytest.fixture(scope="module")
def deep():
    return model(made=config(attn_res_block_size=1))


@pytest.fixture(scope="module")
def eagle(deep):
    draft = Draft(DraftConfig(text=deep.config.text), torch.float32).start_(deep)
    return EagleDraft(draft.requires_grad_(False), Tree.of([2, 2, 1]))


def traced(deep, eagle, context):
    taps, trace = {}, Trace()
    deep(torch.tensor([context[:-1]]), taps=taps)
    trace.see(0, features(taps, eagle.reads)[0])
    return trace


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_trained_draft_grows_what_chains_would_say(deep, eagle, temperature):
    """Every candidate's law is that of a chain along its path, given its siblings."""
    contexts = [[5, 9, 2, 40, 11], [7, 7]]
    rule = SampleOptions(temperature=temperature)
    chances = [Chance(rule, torch.Generator().manual_seed(i)) for i in range(2)]
    traces = [traced(deep, eagle, c) for c in contexts]
    both = eagle.propose_from(traces, contexts, 3, chances)
    assert traces[0].cache.lens == (4, 1)
    for context, made in zip(contexts, both, strict=True):
        assert made.parents == TREE.parents
        for node in range(len(made.ids)):
            path = [made.ids[n] for n in made.path(node)]
            logits = _along(deep, eagle, context, path[:-1])
            siblings = [
                made.ids[n] for n in range(node) if made.above[n] == made.above[node]
            ]
            if temperature:
                law = logits.double().softmax(-1)
                law[siblings] = 0
                assert gap(made.probs[node], law / law.sum()) < 1e-5
            else:
                best = logits.argsort(descending=True, stable=True)
                assert made.ids[node] == int(best[len(siblings)])
    short = eagle.propose_from(
        [traced(deep, eagle, contexts[0])], contexts[:1], 1, chances[:1]
    )
    assert short[0].parents == (-1, -1)


def _along(deep, eagle, context, path):
    """The draft's logits behind a context and a path, by its unroll."""
    said = torch.tensor([[*context, *path, 0]])
    taps = {}
    deep(said, taps=taps)
    steps = eagle.draft.unroll(
        said, features(taps, eagle.reads), (said.shape[1],), len(path) + 1
    )
    return steps[-1][0, len(context) - 2]


def test_few_likely_tokens_make_a_small_tree(deep, eagle):
    rule = SampleOptions(temperature=1.0, top_k=1)
    chance = Chance(rule, torch.Generator())
    context = [5, 9, 2]
    (made,) = eagle.propose_from([traced(deep, eagle, context)], [context], 3, [chance])
    assert made.parents == (-1, 0, 1)
    assert torch.equal(made.probs.amax(-1), torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_trained_draft_in_the_engine(deep, eagle, temperature):
    asked = [request("a", 9, temperature=temperature), request("b", 37, n=2)]
    made = engine(deep, draft=eagle, num_speculative_tokens=3)
    got = run(made, asked)
    assert made.counts.accepted_tokens > 0
    if temperature == 0:
        same(got["a", 0], run(engine(deep), asked[:1])["a", 0])
    assert all(len(tokens(x)) == 12 for x in got.values())


@pytest.fixture(scope="module")
def sharp():
    made = model(made=FOUR)
    with torch.no_grad():
        made.language_model.lm_head.weight.mul_(4.0)
    return made


def fixed(certain=False):
    generator = torch.Generator().manual_seed(3)
    laws = torch.rand(5, 61, generator=generator, dtype=torch.float64).pow(6)
    laws /= laws.sum(-1, keepdim=True)
    return FixedTree(laws, 3, Tree.of([3, 2]), certain)


PLAIN = {"temperature": 1.0, "top_p": 1.0}
CUT = {"temperature": 0.8, "top_p": 0.7, "top_k": 9, "min_p": 0.02}


@pytest.mark.slow
@pytest.mark.parametrize(("options", "certain"), [(PLAIN, False), (CUT, True)])
def test_the_law_of_the_text_is_the_targets(sharp, options, certain):
    found = pairs(sharp, fixed(certain), options)
    assert chi_square(found, expected(sharp, options)) < 4


@pytest.mark.slow
def test_without_a_correction_the_text_has_another_law(sharp, monkeypatch):
    monkeypatch.setattr(accept, "correction", lambda p, token, q: p)
    assert chi_square(pairs(sharp, fixed(), PLAIN), expected(sharp, PLAIN)) > 6
