"""The running decoder against the spec: logits, taps, every parameter's gradient."""

import pytest
import torch
from readings import agree, models, tensor  # noqa: F401

from k3.spec import model as spec


@pytest.fixture(scope="module")
def running():
    return models.random(models.config())


IDS = [3, 1, 4, 1, 5, 9, 2]


def wanted(running, ids=IDS, tap=spec.keep):
    parameters = models.leaves(running)
    weights, text = models.by_name(parameters), running.config.text
    states = spec.empty_states(weights, text)
    embeddings = spec.embed(weights["model.embed_tokens.weight"], ids)
    return parameters, spec.run(weights, text, states, embeddings, tap=tap)[1]


def test_logits_and_every_gradient(running):
    parameters, slow = wanted(running)
    fast = running(torch.tensor([IDS]))[0]
    agree.close(fast, slow, 1e-9, "logits")
    weights = torch.randn_like(slow)
    running.zero_grad()
    (fast * weights).sum().backward()
    (slow * weights).sum().backward()
    for name, p in running.named_parameters():
        other = parameters[name].grad
        if p.grad is None or other is None:
            assert not (torch.zeros(1) if other is None else other).any(), name
            assert not (torch.zeros(1) if p.grad is None else p.grad).any(), name
        else:
            agree.close(p.grad, other, 1e-8, name)


def test_taps(running):
    seen = {}

    def look(name, value):
        seen.setdefault(name, []).append(value)
        return value

    wanted(running, tap=look)
    taps = {}
    running(torch.tensor([IDS]), taps=taps)
    assert set(seen) <= set(taps)
    for name, rows in seen.items():
        agree.close(taps[name][0], torch.stack(rows), 1e-9, name)


@torch.no_grad()
def test_prefill_then_steps(running):
    _, slow = wanted(running)
    state = running.init_state(1)
    first, state = running(torch.tensor([IDS[:4]]), state=state)
    agree.close(first[0], slow[:4], 1e-9)
    for t in range(4, len(IDS)):
        logits, state = running.step(torch.tensor([[IDS[t]]]), state)
        agree.close(logits[0, 0], slow[t], 1e-9)


@torch.no_grad()
def test_packed_sequences(running):
    both = running(torch.tensor([IDS + IDS[:3]]), cu_seqlens=torch.tensor([0, 7, 10]))
    _, slow = wanted(running)
    agree.close(both[0, :7], slow, 1e-9)
    agree.close(both[0, 7:], slow[:3], 1e-9)


@torch.no_grad()
def test_features_are_spliced(running):
    placeholder = running.config.media_placeholder_token_id
    ids, rows = [2, placeholder, placeholder, 5], torch.randn(2, 7)
    weights, text = models.by_name(models.leaves(running)), running.config.text
    embeddings = spec.embed(
        weights["model.embed_tokens.weight"], ids, rows, placeholder
    )
    states = spec.empty_states(weights, text)
    slow = spec.run(weights, text, states, embeddings)[1]
    agree.close(running(torch.tensor([ids]), features=rows)[0], slow, 1e-9)


@torch.no_grad()
@pytest.mark.parametrize(
    "changes",
    [
        {"attn_res_block_size": 1},
        {"attn_res_block_size": 2},
        {"num_experts_per_token": 5},
        {"routed_scaling_factor": 2.5},
        {"activation_situ_beta": 1.5, "activation_situ_linear_beta": 3.0},
        {"rms_norm_eps": 0.01},
    ],
    ids=str,
)
def test_other_configurations(changes):
    running = models.random(models.config(**changes))
    _, slow = wanted(running)
    agree.close(running(torch.tensor([IDS]))[0], slow, 1e-9)
