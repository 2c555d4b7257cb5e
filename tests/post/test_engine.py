"""Turns on the engine: what pauses, neighbours and new weights change, and what not."""

import pytest
import torch
from serving import engine
from small import MEDIA, config, ids, model, schedule

from k3.errors import RequestError
from k3.post.engine import EngineSampler, SamplerOptions, place_seed
from k3.train.rollout import Picture, Sampler

FOUR = config(num_hidden_layers=4, linear=schedule(4))
pytestmark = pytest.mark.usefixtures("unchecked")
GREEDY = SamplerOptions(temperature=0.0, ignore_eos=True)


@pytest.fixture
def net():
    return model(made=FOUR)


@pytest.fixture(scope="module")
def eyes():
    return model(made=config(vision={}, num_hidden_layers=4, linear=schedule(4)))


def prompt(length, seed=1):
    return ids(length, seed=seed).tolist()


def write(sampler, wanted, *, pauses=(), max_tokens=40):
    """Tokens and log-probabilities by key; all are paused before some steps."""
    text = {key: list(tokens) for key, tokens in wanted.items()}
    logprobs = {key: [] for key in wanted}
    left = set(wanted)

    def submit():
        for key in sorted(left):
            done = len(logprobs[key])
            sampler.submit(key, text[key], max_tokens - done)

    submit()
    step = 0
    while left:
        if step in pauses:
            for key in left:
                sampler.pause(key)
            submit()
        for piece in sampler.step():
            text[piece.key] += piece.tokens
            logprobs[piece.key] += piece.logprobs
            if piece.done:
                left.remove(piece.key)
        step += 1
    return text, logprobs


def test_it_is_a_sampler(net):
    assert isinstance(EngineSampler(engine(net)), Sampler)


@pytest.mark.parametrize("options", [GREEDY, SamplerOptions(ignore_eos=True, seed=3)])
def test_paused_and_resumed_is_uninterrupted(net, options):
    wanted = {"a": prompt(5), "b": prompt(33, 2), "c": prompt(17, 3)}
    want, logprobs = write(EngineSampler(engine(net), options), wanted)
    made = EngineSampler(engine(net), options)
    got, found = write(made, wanted, pauses=(1, 2, 19, 30))
    assert got == want
    for key, values in logprobs.items():
        assert found[key] == pytest.approx(values, abs=2e-5)
        assert len(values) == 40


@pytest.mark.parametrize("options", [GREEDY, SamplerOptions(ignore_eos=True, seed=3)])
def test_a_token_does_not_depend_on_who_else_runs(net, options):
    wanted = {name: prompt(9, at) for at, name in enumerate("abcdef")}
    together, _ = write(EngineSampler(engine(net), options), wanted)
    for name, tokens in wanted.items():
        alone, _ = write(EngineSampler(engine(net), options), {name: tokens})
        assert alone[name] == together[name]


def test_logprobs_are_the_models_at_temperature_one(net):
    made = EngineSampler(engine(net), SamplerOptions(ignore_eos=True))
    text, logprobs = write(made, {"a": prompt(7)}, max_tokens=10)
    logits = net(torch.tensor([text["a"]]))[0].detach().double().log_softmax(-1)
    want = [float(logits[at - 1, text["a"][at]]) for at in range(7, 17)]
    assert logprobs["a"] == pytest.approx(want, abs=2e-5)
    assert made.options.plain
    assert not SamplerOptions(temperature=0.7).plain


def test_new_weights_are_a_new_version(net):
    made = EngineSampler(engine(net), GREEDY)
    made.submit("a", prompt(40), 8)
    made.step()
    before = net.weight_version
    made.pause("a")
    made.update()
    assert (made.version, net.weight_version == before) == (1, False)
    made.update(7)
    assert made.version == 7
    with pytest.raises(RequestError, match="only grows: got 7 after 7"):
        made.update(7)


def test_a_turn_without_room_is_over(net):
    made = EngineSampler(engine(net, max_model_len=20), GREEDY)
    made.submit("a", prompt(20), 5)
    (piece,) = made.step()
    assert (piece.key, piece.tokens, piece.done) == ("a", (), True)


def test_room_is_of_seats_and_of_bytes(net):
    made = EngineSampler(engine(net))
    assert made.room() == 4
    made.submit("a", prompt(5), 9)
    assert made.room() == 3
    budget = 4 * engine(net).bytes_at(1 + 64) - 1
    small = EngineSampler(engine(net, state_bytes=budget))
    assert small.room() == 3
    small.submit("a", prompt(5), 9)
    assert small.room() == 2
    small.submit("b", prompt(200), 9)
    assert small.room() == 0


def test_seeds_of_places_differ():
    seeds = {place_seed(s, k, p) for s in (0, 1) for k in "ab" for p in range(5)}
    assert len(seeds) == 20


def test_wrong_options_are_refused():
    with pytest.raises(RequestError, match="growth must be at least 1 token: got 0"):
        SamplerOptions(growth=0)
    with pytest.raises(RequestError, match="temperature must be at least 0"):
        SamplerOptions(temperature=-1.0)


def test_pictures_travel_with_the_tokens(eyes):
    """Also with a placeholder that the model wrote between two of its pictures."""
    size = eyes.config.vision.patch_size
    shades = [torch.full((24, 3, size, size), shade) for shade in (0.1, 0.9)]
    words = ids(20, words=50).tolist()
    tokens = [*words, *[MEDIA] * 6, 7, MEDIA, 9, *[MEDIA] * 6, *words[:5]]
    first, second = (
        Picture(start, shade, (1, 4, 6))
        for start, shade in zip((20, 29), shades, strict=True)
    )
    made = EngineSampler(engine(eyes), GREEDY)
    made.submit("a", tokens, 6, [first, second])
    got = [token for _ in range(12) for p in made.step() for token in p.tokens]
    grids = torch.tensor([[1, 4, 6]] * 2)
    with torch.no_grad():
        rows = eyes.encode_images(torch.cat(shades), grids)
        spoken = eyes.language_model.embed(torch.tensor([[MEDIA]]))[0]
        rows = torch.cat([rows[:6], spoken, rows[6:]])
        text = list(tokens)
        for _ in range(6):
            behind = text[len(tokens) :].count(MEDIA)
            shown = torch.cat([rows, spoken.expand(behind, -1)])
            logits = eyes(torch.tensor([text]), features=shown)
            text.append(int(logits[0, -1].argmax()))
    assert got == text[len(tokens) :]
