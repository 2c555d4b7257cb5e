"""The engine against its own runs of one request, and against generate."""

import random

import pytest
import torch
from serving import bytes_of, engine, request, run, same, tokens
from small import config, model, schedule

from k3.errors import RequestError
from k3.model.generate import generate
from k3.serve import CacheOptions, passes, scheduler
from k3.serve.request import derive_seed

FOUR = config(num_hidden_layers=4, linear=schedule(4))
pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def net():
    return model(made=FOUR)


@pytest.fixture
def tight(monkeypatch):
    """Admissions leave no room to grow, so that many are taken back."""
    monkeypatch.setattr(scheduler, "HEADROOM_TOKENS", 0)


def test_it_gives_what_generate_gives(net):
    asked = request("a", 37, temperature=0.8, top_p=0.9, logprobs=2)
    got = tokens(run(engine(net), [asked])["a", 0])
    want = generate(net, [asked.tokens], asked.options)[0]
    assert [t.id for t in got] == want.ids
    assert [t.alternatives[0][0] for t in got] == [x[0][0] for x in want.alternatives]


def traffic(seed, count=7):
    """Requests of all kinds, when they come, and which are cancelled when."""
    draw = random.Random(seed)
    made = []
    for i in range(count):
        asked = request(
            f"{seed}.{i}"[-4:],
            draw.choice([1, 3, 15, 16, 17, 33, 64, 90]),
            n=draw.choice([1, 1, 1, 3]),
            max_tokens=draw.randint(1, 24),
            temperature=draw.choice([0.0, 1.0, 1.3]),
            **({"prompt_logprobs": 1} if draw.random() < 0.2 else {}),
        )
        cancelled = draw.randrange(40) if draw.random() < 0.25 else None
        made.append((draw.randrange(20), cancelled, asked))
    return made


SEEDS = [*range(3), *(pytest.param(i, marks=pytest.mark.slow) for i in range(3, 40))]


@pytest.mark.parametrize("seed", SEEDS)
def test_results_do_not_depend_on_the_batch(net, seed, tight):
    """Random arrivals, cancels and preemptions: each request as it is alone."""
    made = engine(
        net,
        long_tokens=60,
        max_num_long_tokens=24,
        state_bytes=bytes_of(net, 3, 24),
        long_state_bytes=bytes_of(net, 1, 120),
        max_num_batched_tokens=30,
    )
    plan, draw = traffic(seed), random.Random(seed)

    def each(step):
        for start, cancelled, asked in plan:
            if start == step:
                made.add(asked)
            if cancelled == step:
                made.cancel(asked.id)
        for lane in (made.short, made.long):
            if lane.active and draw.random() < 0.2:
                lane.send_back(draw.choice(lane.active))

    keep = request("keep", 5, max_tokens=40)
    got = run(made, [keep], each=each)
    for _, cancelled, asked in [*plan, (0, None, keep)]:
        solo = run(engine(net), [asked])
        for index in range(asked.n):
            outputs, want = got.get((asked.id, index), []), solo[asked.id, index]
            if cancelled is None or (outputs and outputs[-1].finish != "abort"):
                same(outputs, want)
            else:
                said = tokens(outputs)
                assert [t.id for t in said] == [t.id for t in tokens(want)][: len(said)]
    assert made.snapshot().state_bytes == 0
    assert not made.sequences


def test_preemption_loses_nothing(net, tight):
    asked = [request(name, 20, max_tokens=30) for name in "abcd"]
    made = engine(net, state_bytes=bytes_of(net, 3, 40))
    most = 0

    def each(step):
        nonlocal most
        most = max(most, made.snapshot().state_bytes)

    got = run(made, asked, each=each)
    assert made.snapshot().preemptions > 0
    assert 0 < most <= bytes_of(net, 3, 40)
    for one in asked:
        same(got[one.id, 0], run(engine(net), [one])[one.id, 0])


def test_report_7_an_abort_during_prefill_publishes_nothing(net):
    """Four chunks; the client leaves while the first is run, and asks again."""
    asked = request("a", 128)
    made, run_pass = engine(net, max_num_batched_tokens=32), net.forward

    def leaves(*args, **kwargs):
        raise InterruptedError

    made.add(asked)
    net.forward = leaves
    try:
        ended = made.step()
    finally:
        net.forward = run_pass
    assert [o.finish for o in ended] == ["error"]
    pages = made.cache.index.pages
    assert pages.num_used == 0
    got = run(made, [asked])["a", 0]
    assert got[-1].cached_tokens == 0
    same(got, run(engine(net), [asked])["a", 0])
    made.add(request("b", 128))
    made.step()
    made.cancel("b", silent=True)
    assert run(made, [request("b", 128)])["b", 0][0].cached_tokens == 32


def test_report_95_samples_are_forked_and_seeded(net):
    asked = request("a", 40, n=4, seed=7, temperature=1.5, max_tokens=16)
    made = engine(net)
    got = [run(made, [asked]) for _ in range(2)]
    texts = [[[t.id for t in tokens(each["a", i])] for i in range(4)] for each in got]
    assert texts[0] == texts[1]
    assert len({tuple(text) for text in texts[0]}) == 4
    for i in range(4):
        alone = request("a", 40, seed=derive_seed(7, i), temperature=1.5, max_tokens=16)
        same(got[0]["a", i], run(engine(net), [alone])["a", 0])
    counted = made.snapshot()
    assert (counted.prompt_tokens, counted.generation_tokens) == (80, 128)
    assert derive_seed(7, 0) == 7
    assert len({derive_seed(7, i) for i in range(100)}) == 100


def test_more_samples_than_seats(net):
    got = run(engine(net, max_num_seqs=2), [request("a", 20, n=5)])
    want = run(engine(net, max_num_seqs=8), [request("a", 20, n=5)])
    for i in range(5):
        same(got["a", i], want["a", i])


def test_prompt_logprobs_are_those_of_one_pass(net):
    """Also for a prompt that is cached: it is run whole."""
    made, asked = engine(net), request("a", 50, max_tokens=0, prompt_logprobs=2)
    run(made, [request("b", tokens=asked.tokens)])
    got = run(made, [asked])["a", 0]
    assert [o.finish for o in got] == ["length"]
    scores = got[0].prompt_logprobs
    with torch.no_grad():
        logits = net(torch.tensor([asked.tokens])).double().log_softmax(-1)[0]
    assert scores[0] is None
    assert len(scores) == 50
    for at, score in enumerate(scores[1:]):
        assert abs(score.logprob - logits[at, asked.tokens[at + 1]]) < 1e-4
        assert [i for i, _ in score.alternatives] == logits[at].topk(2).indices.tolist()


def test_report_86_ten_turns_extend_the_last(net):
    made, history = engine(net), request("a", 30).tokens
    for turn in range(10):
        asked = request("a", tokens=history, max_tokens=7)
        got = run(made, [asked])["a", 0]
        same(got, run(engine(net, cache=None), [asked])["a", 0])
        assert got[-1].cached_tokens >= (len(history) - 25) // 16 * 16
        assert turn == 0 or got[-1].cached_tokens > 0
        said = tuple(t.id for t in tokens(got))
        history = (*history, *said, *request(f"{turn}", 9).tokens)


def test_new_weights_restart_what_runs(net):
    """What was said stays; the rest is as if it were the prompt of the new model."""
    other, mine = model(made=FOUR, seed=9), model(made=FOUR)
    made = engine(mine)
    made.add(request("a", 20, temperature=0.0))
    said = [o for _ in range(4) for o in made.step()]
    mine.load_state_dict(other.state_dict())
    rest = run(made)["a", 0]
    whole = request("a", 20).tokens + tuple(t.id for t in tokens(said))
    left = 12 - len(tokens(said))
    asked = request("a", temperature=0.0, max_tokens=left)
    assert [t.id for t in tokens(rest)] == generate(other, [whole], asked.options)[
        0
    ].ids
    made.reset_prefix_cache()
    assert made.snapshot().cache_usage == 0


def test_ids_are_used_once_at_a_time(net):
    made = engine(net)
    made.add(request("a"))
    with pytest.raises(RequestError, match="used once at a time: got a"):
        made.add(request("a"))


def test_more_rows_than_one_pass_takes(net, monkeypatch):
    """Parts of two rows, with samples, ends and a preemption in between."""
    monkeypatch.setattr(passes.Passes, "_most_rows", lambda self, lane: 2)
    asked = [request(x, 9, n=1 + i % 3, max_tokens=5 + i) for i, x in enumerate("abc")]
    made = engine(net, max_num_seqs=8)
    got = run(made, asked, each=lambda step: step == 4 and send_back(made))
    for one in asked:
        want = run(engine(net), [one])
        for i in range(one.n):
            same(got[one.id, i], want[one.id, i])


def send_back(made):
    made.short.send_back(made.short.running[1])


def test_report_1_the_engine_reuses_what_two_prompts_share(net):
    """Page 64: A of 200 tokens, B shares exactly its first 128."""
    sizes = CacheOptions(
        hash_tokens=64, block_tokens=64, chunk_tokens=64, memory_bytes=2**22
    )
    made = engine(net, cache=sizes, max_num_batched_tokens=300)
    a, b = request("a", 200), request("b", 60)
    asked = request("c", tokens=(*a.tokens[:128], *b.tokens))
    run(made, [a])
    got = run(made, [asked])["c", 0]
    assert got[0].cached_tokens == 128
    same(got, run(engine(net, cache=None), [asked])["c", 0])
