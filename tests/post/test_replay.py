"""Routes are recorded by the engine and taken by the trainer, biases stay frozen."""

import bandit
import pytest
import torch

from k3.errors import RequestError, ShapeError
from k3.post import policy, replay
from k3.post.engine import EngineSampler, SamplerOptions
from k3.post.policy import Policy, UpdateOptions
from k3.post.replay import Replay
from k3.serve.engine import Engine, EngineOptions
from k3.serve.layout import CacheOptions
from k3.train import workers
from k3.train.balance import Balance, routers
from k3.train.masters import Masters
from k3.train.rollout import RolloutOptions, Rollouts


def learner(model, **options):
    masters = Masters(model, betas=(0.9, 0.95), weight_decay=0.0)
    options = UpdateOptions(tokens=40, **options)
    return Policy(model, masters, Balance(model, "quantile", bins=50), options)


def group(model, cache=None, samples=4, max_tokens=5):
    """Samples of one prompt with their routes; answers may be cut by the limit."""
    engine = Engine(model, EngineOptions(routes=True, cache=cache))
    sampler = EngineSampler(engine, SamplerOptions(stop_ids=tuple(range(200))))
    prompts = bandit.Numbers(bandit.recipe())
    options = RolloutOptions(
        prompts=1, samples=samples, share=1.0, max_tokens=max_tokens
    )
    (found,) = Rollouts(sampler, prompts, options).iterate()
    return found


@pytest.fixture
def model():
    made = bandit.model()
    learner(made)
    return made


def shapes(model):
    text = model.config.text
    layers = sum(text.is_moe(i) for i in range(text.num_hidden_layers))
    return layers, text.num_experts_per_token


def test_report_92_routes_are_replayed_and_biases_frozen(model):
    made = learner(model, replay=True, move_biases=True)
    samples = group(model)
    found = policy.lessons(samples, [1.0, 0.0, 1.0, 0.0])
    assert any(len(t.experts()) == len(t.tokens) for t in samples)
    for lesson, sample in zip(found, samples, strict=True):
        assert lesson.routes.shape == (len(sample.tokens), *shapes(model))
        # The last token of a turn that ends the sample is never run.
        assert int((lesson.routes[:-1] < 0).sum()) == 0
    # Other experts than the router's own, as after an update: they are taken too.
    experts = model.config.text.num_experts
    found[1].routes.copy_((found[1].routes + 1) % experts)
    before = [b.clone() for b in made.balance.biases]
    taps = {}
    with torch.no_grad(), made.replay.attached():
        recorded = replay.joined(found)
        with made.replay.taking(recorded):
            policy.logprobs(model, found, taps)
    names = [name for name in routers(model) if not name.startswith("mtp.")]
    for layer, name in enumerate(names):
        index, s = taps[f"{name}.index"], taps[f"{name}.scores"]
        known = recorded[:, layer, 0] >= 0
        assert torch.equal(index[known], recorded[known, layer].long())
        chosen = s.gather(-1, index)
        weights = chosen / chosen.sum(-1, keepdim=True)
        scaling = float(model.config.text.routed_scaling_factor)
        torch.testing.assert_close(taps[f"{name}.weights"], weights * scaling)
    counted = []
    made.balance.update_ = lambda *given: counted.append(given)
    with workers.pool(2) as pool:
        made.update(found, 0, pool)
    assert counted == []
    for old, new in zip(before, made.balance.biases, strict=True):
        assert torch.equal(old, new)


def test_report_92_off_again_updates_resume(model):
    made = learner(model, move_biases=True)
    found = policy.lessons(group(model), [1.0, 0.0, 1.0, 0.0])
    before = [b.clone() for b in made.balance.biases]
    with workers.pool(1) as pool:
        made.update(found, 0, pool)
    pairs = zip(before, made.balance.biases, strict=True)
    assert not any(torch.equal(old, new) for old, new in pairs)
    assert all(m.choose is None for m in routers(model).values())


def test_what_the_sampler_took_is_what_the_trainer_would_take(model):
    """The same weights choose the same experts, decoded token by token or at once."""
    made = learner(model)
    found = policy.lessons(group(model), [1.0, 0.0, 1.0, 0.0])
    taps = {}
    with torch.no_grad():
        policy.logprobs(model, found, taps)
    recorded = replay.joined(found)
    names = [name for name in routers(model) if not name.startswith("mtp.")]
    own = torch.stack([taps[f"{name}.index"] for name in names], 1)
    known = recorded >= 0
    assert float((own[known] == recorded[known]).float().mean()) > 0.99
    with workers.pool(1) as pool:
        assert made.update(found, 0, pool)["parity"]["max"] < 1e-4


def test_tokens_restored_from_the_cache_choose_for_themselves(model):
    cache = CacheOptions(hash_tokens=16, block_tokens=16, chunk_tokens=16)
    prompts = bandit.Numbers(bandit.recipe())
    engine = Engine(model, EngineOptions(routes=True, cache=cache))
    sampler = EngineSampler(engine, SamplerOptions(ignore_eos=True))
    told = []
    for key in ("a", "b"):
        sampler.submit(key, list(range(400, 440)), 2)
        while not told or not told[-1].done:
            told += sampler.step()
        if key == "a":
            first, told = told, []
    assert first[0].routes[0][0] == 0
    assert told[0].routes[0][0] == 32
    assert prompts.number == 0


def test_samples_without_routes_choose_for_themselves(model):
    made = learner(model, replay=True)
    found = policy.lessons(group(model), [1.0, 0.0, 1.0, 0.0])
    plain = [policy.Lesson(x.tokens, x.written, x.then, x.versions, 1.0) for x in found]
    assert replay.joined(plain) is None
    mixed = replay.joined([found[0], plain[1]])
    assert int((mixed[-len(plain[1]) :] != replay.NOT_KNOWN).sum()) == 0
    with workers.pool(1) as pool:
        assert made.update(plain, 0, pool)["parity"]["max"] < 1e-4


def test_routers_choose_as_ever_after_an_error(model):
    held = Replay(model)
    with pytest.raises(ShapeError, match="layers of experts: got 9; replay what"):
        taken(held, torch.zeros(3, 9, 2, dtype=torch.int16))
    assert all(m.choose is None for m in routers(model).values())


def taken(held, recorded):
    with held.attached(), held.taking(recorded):
        pass


def test_a_draft_has_no_routes():
    with pytest.raises(RequestError, match="run one by one: got num_speculative"):
        EngineOptions(routes=True, num_speculative_tokens=2)


def test_a_run_with_replay_goes_on_after_a_cut(tmp_path):
    records, one = [], {"replay": True, "prompts": 1, "samples": 2}
    bandit.run(tmp_path, bandit.recipe(iterations=1, **one))
    chosen = bandit.recipe(iterations=2, **one)
    bandit.run(tmp_path, chosen, report=records.append)
    assert records[0]["parity"]["max"] < 1e-4
