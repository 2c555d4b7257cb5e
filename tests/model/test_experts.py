"""Experts dense and packed: one function, the checkpoint's names, idle gradients."""

import pytest
import tolerances
import torch
from small import config, gap, ids, model

import k3
from k3.errors import RequestError
from k3.kernels import choose, moe, mx, mxfp8, situ
from k3.model import Model
from k3.model.experts import Experts

SIZES = {"moe_intermediate_size": 32, "routed_expert_hidden_size": 64}
LAYER = "language_model.model.layers.1.block_sparse_moe.experts."


@pytest.fixture(scope="module")
def pair():
    """A dense and a packed module of the same values."""
    text = config(**SIZES).text
    dense = Experts(text, torch.float32, "dequantized")
    packed = Experts(text, torch.float32, "packed")
    for name in ("w1", "w2", "w3"):
        w = getattr(dense, name).detach().normal_()
        stored, scale = mx.encode(w)
        getattr(packed, f"{name}_packed").copy_(stored)
        getattr(packed, f"{name}_scale").copy_(scale)
        w.copy_(mx.decode(stored, scale, torch.float32))
    return dense, packed


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_packed_is_dense(pair, rows):
    x = torch.randn(rows, 64)
    for e in (0, 10):
        assert torch.equal(pair[0](e, x), pair[1](e, x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_a_cast_follows_the_model_and_leaves_the_bytes(pair, dtype):
    packed = Experts(config(**SIZES).text, torch.float32, "packed")
    packed.load_state_dict(pair[1].state_dict())
    packed.to(dtype)
    assert packed.w1_packed.dtype == packed.w1_scale.dtype == torch.uint8
    x = torch.randn(3, 64).to(dtype)
    assert packed(4, x).dtype == dtype
    narrow = pair[0].w1[4].to(dtype)
    assert torch.equal(packed.weight("w1", 4), narrow)


def test_the_state_dict_has_the_names_of_the_checkpoint(pair):
    dense, packed = (net.state_dict() for net in pair)
    assert set(dense) == {f"{e}.w{i}.weight" for e in range(11) for i in (1, 2, 3)}
    assert set(packed) == {f"{n}_{s}" for n in dense for s in ("packed", "scale")}
    assert dense["10.w2.weight"].shape == (64, 32)
    assert packed["10.w2.weight_packed"].shape == (64, 16)
    assert packed["10.w2.weight_scale"].shape == (64, 1)


@pytest.mark.parametrize("kind", ["dequantized", "packed"])
def test_state_dict_round_trip(kind):
    made = config(**SIZES)
    first = Model(made, dtype=torch.float32, experts=kind)
    generator = torch.Generator().manual_seed(0)
    for x in first.state_dict().values():
        if x.is_floating_point():
            x.normal_(std=0.1, generator=generator)
        else:
            x.random_(100, 130, generator=generator)
    second = Model(made, dtype=torch.float32, experts=kind)
    assert second.load_state_dict(first.state_dict()) is not None
    for name, x in second.state_dict().items():
        assert torch.equal(x, first.state_dict()[name])
    assert torch.equal(first(ids(1, 5)), second(ids(1, 5)))


@pytest.mark.parametrize("kind", ["dequantized", "packed"])
def test_a_wrong_state_dict_is_refused(kind):
    net = Model(config(**SIZES), experts=kind)
    names = [n for n in net.state_dict() if n.startswith(f"{LAYER}3.w2")]
    state = net.state_dict()
    wrong = state.pop(names[0])
    with pytest.raises(RuntimeError, match=f"Missing.*{names[0]}"):
        net.load_state_dict(state)
    state[names[0]] = wrong[:-1]
    with pytest.raises(RuntimeError, match=r"experts.3.w2.* must have shape \(64, "):
        net.load_state_dict(state)
    state[names[0]] = wrong
    state[f"{LAYER}11.w2.weight"] = wrong
    with pytest.raises(RuntimeError, match=r"Unexpected.*experts.11.w2.weight"):
        net.load_state_dict(state)


def test_unknown_kinds_are_refused():
    with pytest.raises(RequestError, match=r"'dequantized' or 'packed': got 'fp8'"):
        Model(config(), experts="fp8")


def test_mapped_experts_are_a_list_of_tensors(pair):
    listed = Experts(config(**SIZES).text, torch.float32, "packed")
    for name, x in list(pair[1].named_buffers()):
        delattr(listed, name)
        setattr(listed, name, list(x))
    x = torch.randn(4, 64)
    assert torch.equal(listed(7, x), pair[1](7, x))
    assert set(listed.state_dict()) == set(pair[1].state_dict())


def test_report_32_idle_experts_of_a_model(poisoned):
    """Two passes, the second over memory of the first: zero, not NaN."""
    net = model(torch.float64)
    taps = {}
    for _ in range(2):
        net.zero_grad(set_to_none=False)
        net(ids(1, 2), taps=taps).square().sum().backward()
        for i in range(1, 7):
            experts = net.language_model.model.layers[i].block_sparse_moe.experts
            used = taps[f"layers.{i}.block_sparse_moe.index"].unique()
            idle = [e for e in range(11) if e not in used]
            for w in (experts.w1, experts.w2, experts.w3):
                assert (w.grad[idle] == 0).all()
                assert w.grad[used].isfinite().all()
                assert (w.grad[used].abs().amax((1, 2)) > 0).all()


def test_report_32_no_token_in_the_batch(poisoned):
    net = model(torch.float64)
    logits = net(ids(2, 0))
    assert logits.shape == (2, 0, 61)
    logits.sum().backward()
    for p in net.parameters():
        assert p.grad is None or (p.grad == 0).all()


def test_experts_of_the_golden_are_the_same_packed_and_dense():
    here = "tests/golden/tiny_release"
    packed = k3.load(here, dtype=torch.float32)
    dense = k3.load(here, dtype=torch.float32, experts="dequantized")
    with torch.no_grad():
        with choose.use("torch"):
            assert gap(packed(ids(1, 9)), dense(ids(1, 9))) < 1e-6
        assert gap(packed(ids(1, 9)), dense(ids(1, 9))) < tolerances.of(
            "packed", torch.float32
        )


def rounded_combine(experts, z, index, weights):
    """The chosen experts token by token, MXFP8 where a product reads activations."""
    out = torch.zeros_like(z)
    for t in range(len(z)):
        for e, w in zip(index[t].tolist(), weights[t], strict=True):
            x = mxfp8.straight_through(z[t : t + 1])
            gate, up = x @ experts.w1[e].T, x @ experts.w3[e].T
            hidden = situ.situ(gate, up, experts.beta, experts.linear_beta)
            y = mxfp8.straight_through(hidden) @ experts.w2[e].T
            out[t] = out[t] + w * y[0]
    return out


@pytest.mark.parametrize("kernels", ["torch", None])
def test_mxfp8_activations_of_every_product_with_gradients(pair, kernels):
    """Quantization-aware training: both kernels, and what inference then does."""
    experts = Experts(config(**SIZES).text, torch.float32, "dequantized")
    experts.load_state_dict(pair[0].state_dict())
    experts.activations = "mxfp8"
    z = torch.randn(7, 64, requires_grad=True)
    index = torch.stack([torch.randperm(11)[:3] for _ in range(7)])
    weights = torch.rand(7, 3, requires_grad=True)
    leaves = [z, weights, *experts.parameters()]
    wanted = rounded_combine(experts, z, index, weights)
    shake = torch.randn(7, 64)
    gradients = torch.autograd.grad((wanted * shake).sum(), leaves)
    with choose.use(kernels):
        found = combined(experts, z, index, weights)
        given = torch.autograd.grad((found * shake).sum(), leaves)
        with torch.no_grad():
            inferred = combined(experts, z, index, weights)
    assert gap(found, wanted) < 1e-6
    assert gap(inferred, wanted) < 1e-6
    for a, b in zip(given, gradients, strict=True):
        assert gap(a, b) < 1e-5
    with torch.no_grad():
        experts.activations = "plain"
        assert gap(combined(experts, z, index, weights), wanted) > 1e-3


def combined(experts, z, index, weights):
    found = experts.grouped(z, index, weights)
    if found is None:
        found = moe.combine(z, index, weights, experts.for_pass())
    return found
