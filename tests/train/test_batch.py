"""Loss and gradients do not depend on how a batch is shared."""

import pytest
import torch
import torch.nn.functional as F

from k3.train import batch, pretrain, workers


@pytest.fixture
def model(small):
    model = pretrain.fresh(small)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.add_(
                    0.05 * torch.randn(p.shape, generator=torch.manual_seed(p.numel()))
                )
    return model


@pytest.fixture
def rows():
    return torch.randint(0, 300, (3, 18), generator=torch.manual_seed(1))


def run(model, rows, num_workers):
    parameters = [p for p in model.parameters() if p.requires_grad]
    with workers.pool(num_workers) as pool:
        return batch.run(model, parameters, rows, pool, num_workers)


def test_one_worker_is_plain_cross_entropy(model, rows):
    logits = model(rows[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
    found = run(model, rows, 1)
    assert found.loss == pytest.approx(float(loss.detach()), rel=1e-6)
    head = torch.autograd.grad(loss, model.language_model.lm_head.weight)[0]
    torch.testing.assert_close(found.gradients[-1], head)


def test_uneven_shares_give_the_same_mean(model, rows):
    one, two = run(model, rows, 1), run(model, rows, 2)
    assert two.loss == pytest.approx(one.loss, rel=1e-6)
    assert torch.equal(one.loads, two.loads)
    for a, b in zip(one.gradients, two.gradients, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_the_same_shares_give_the_same_bits(model, rows):
    one, two = run(model, rows, 2), run(model, rows, 2)
    for a, b in zip(one.gradients, two.gradients, strict=True):
        assert a is b is None or torch.equal(a, b)


def test_loads_count_every_choice(small, model, rows):
    loads = run(model, rows, 2).loads
    chosen = rows[:, 1:].numel() * small.config.text.num_experts_per_token
    assert loads.shape == (4, 8)
    assert (loads.sum(-1) == chosen).all()


def test_only_the_first_unused_retrieval_has_no_gradient(model, rows):
    named = [n for n, p in model.named_parameters() if p.requires_grad]
    found = run(model, rows, 1).gradients
    unused = {n for n, g in zip(named, found, strict=True) if g is None}
    prefix = "language_model.model.layers.0.self_attention_res"
    assert unused == {f"{prefix}_norm.weight", f"{prefix}_proj.weight"}
