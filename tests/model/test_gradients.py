"""Parameter gradients of whole models against finite differences, in fp64."""

import pytest
import torch
from small import MEDIA, config, ids, model, schedule

CLIP = (3, 4, 4)
STEP = 1e-6


def shallow(**vision):
    """KDA dense, KDA sparse, KDA, MLA, and an MTP layer; one vision block."""
    return config(
        num_hidden_layers=4,
        attn_res_block_size=2,
        num_nextn_predict_layers=1,
        linear=schedule(4),
        vision={"vt_num_hidden_layers": 1, **vision},
    )


def loss_of(net):
    """A loss over packed text, a spliced clip and the MTP head."""
    tokens, generator = ids(1, 23), torch.Generator().manual_seed(0)
    tokens[0, 4:8] = MEDIA
    patches = torch.randn(48, 3, 14, 14, generator=generator).double()
    weight = torch.randn(61, generator=generator).double()
    bounds = torch.tensor([0, 3, 3, 20, 23])

    def loss():
        features, taps = net.encode_images(patches, torch.tensor([CLIP])), {}
        logits = net(tokens, features=features, cu_seqlens=bounds, taps=taps)
        ahead = net.language_model.model.layers[4](tokens, taps["output_attn_res"])
        return ((logits + 0.5 * ahead).tanh() @ weight).sum()

    return loss


def along(p, direction, loss):
    """The central difference of the loss when p moves along a direction."""
    values = []
    with torch.no_grad():
        for sign in (1, -2):
            p += sign * STEP * direction
            values.append(loss())
        p += STEP * direction
    return (values[0] - values[1]) / (2 * STEP)


@pytest.mark.parametrize("attention", ["joint", "divided"])
def test_random_coordinates_of_every_parameter(attention, unchecked):
    """One direction for each parameter: sparse, so that single entries count."""
    net = model(torch.float64, shallow(attention=attention))
    loss = loss_of(net)
    named = {n: p for n, p in net.named_parameters() if p.requires_grad}
    # Layer 2 differs from layer 1 in nothing.
    named = {n: p for n, p in named.items() if ".layers.2." not in n}
    if attention == "divided":
        named = {n: p for n, p in named.items() if n.startswith("vision_tower")}
    grads = torch.autograd.grad(loss(), list(named.values()), allow_unused=True)
    generator = torch.Generator().manual_seed(2)
    for (name, p), grad in zip(named.items(), grads, strict=True):
        if grad is None:
            # Layer 0 has no depth to retrieve from before its attention.
            assert ".layers.0.self_attention_res" in name
            continue
        direction = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        direction *= torch.rand(p.shape, generator=generator) < max(0.05, 3 / p.numel())
        want, got = along(p, direction, loss), (grad * direction).sum()
        scale = grad.abs().max() * direction.abs().max()
        assert abs(got - want) < 2e-5 * scale + 1e-7, name


def test_every_parameter_has_a_gradient_that_matters():
    net = model(torch.float64, config(num_nextn_predict_layers=0))
    net(ids(2, 60)).square().sum().backward()
    for name, p in net.named_parameters():
        if p.requires_grad and ".layers.0.self_attention_res" not in name:
            assert p.grad.isfinite().all(), name
            assert p.grad.abs().max() > 0, name
    bias = net.language_model.model.layers[1].block_sparse_moe.gate
    assert not bias.e_score_correction_bias.requires_grad


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_narrow_gradients_are_finite(dtype, poisoned):
    net = model(dtype)
    net(ids(2, 33)).square().mean().backward()
    for name, p in net.named_parameters():
        assert p.grad is None or p.grad.isfinite().all(), name
        assert p.grad is None or p.grad.dtype == p.dtype, name


def test_gradients_at_the_floor_of_every_decay_are_finite(poisoned):
    """dt_bias so high that every log-decay is -5 to the last bit."""
    net = model(torch.float32)
    for name, p in net.named_parameters():
        if name.endswith("dt_bias"):
            p.detach().fill_(100.0)
    net(ids(2, 50)).square().mean().backward()
    for name, p in net.named_parameters():
        assert p.grad is None or p.grad.isfinite().all(), name
