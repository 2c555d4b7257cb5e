"""Every kernel and layer that ships is the spec's function, at odd sizes."""

import pytest
import small
import torch
from mutants import checks

from k3.spec import model as spec
from k3.verify.exact import gradient
from k3.verify.exact.number import Reference
from k3.verify.exact.pairs import channel, decoder, kda, mla, mtp
from k3.verify.exact.tower import Tower

KERNELS = {
    "recurrent": lambda: kda.memory("recurrent", (4, 0, 3)),
    "step": lambda: kda.memory("step", (1, 1, 1)),
    "chunk, one token": lambda: kda.memory("chunk", (1,)),
    "chunk, packed across tiles": lambda: kda.memory("chunk", (3, 17, 0, 1), K=3, V=5),
    "chunk, steep": lambda: kda.memory("chunk", (18,), K=3, V=2, floor=-30.0),
    "chunk, context ranks": lambda: kda.ranks((2, 7, 9)),
    "gate": kda.gate,
    "gate of Kimi-Linear": lambda: kda.gate(None),
    "convolution": kda.short_conv,
    "expanded, causal": lambda: mla.expanded(5, 5),
    "expanded, last of more": lambda: mla.expanded(3, 8, content=9),
    "expanded, in passes": lambda: mla.expanded(3, 8, workspace=3),
    "absorbed": mla.absorbed,
    "absorbed, one query": lambda: mla.absorbed(1, 9),
    "absorbed, paged": lambda: mla.absorbed(page=3),
    "RMSNorm": channel.rms_norm,
    "SiTU": channel.situ_pair,
    "depth mix": channel.mix,
    "depth mix at a block's start": lambda: channel.mix(3, running=False),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    report = KERNELS[name]().check(order=("shadow", "hash"), covering=False)
    assert report, report
    assert report.bound <= 1e-6
    assert "computed" not in report.readings.values()
    assert not any("uninterpreted" in note for note in report.notes)


def layers():
    made = checks.model()
    found = made.language_model.model.layers
    config = made.config.text
    return {
        "KDA": kda.layer(found[0].self_attn, 6, floor=-5.0, eps=1e-5),
        "MLA": mla.layer(found[3].self_attn, 5),
        "MoE": channel.moe(found[1].block_sparse_moe, config, 5),
        "MoE, one token": channel.moe(found[1].block_sparse_moe, config, 1),
    }


@pytest.mark.parametrize("name", ["KDA", "MLA", "MoE", "MoE, one token"])
def test_layers(name):
    report = layers()[name].check(order="hash")
    assert report, report
    assert report.bound <= 1e-6
    if name == "KDA":
        assert not any(n for n, _ in report.untested.values()), report.untested
    if name == "MoE":
        bias = report.untested["weights.gate.e_score_correction_bias"]
        assert bias == (5, 5), "the bias only chooses"


def test_multi_token_prediction():
    text = checks.TEXT | {"num_nextn_predict_layers": 1}
    made = small.config(linear=checks.LINEAR, **text)
    layer = small.model(torch.float32, made).language_model.model.layers[4]
    report = mtp.layer(layer, made.text, [3, 1, 4]).check(seeds=1, covering=False)
    assert report, report


def test_packed_experts():
    text = {"quantization_config": None, "num_experts": 3, "num_experts_per_token": 2}
    made = small.config(
        hidden_size=5, moe_intermediate_size=32, routed_expert_hidden_size=32, **text
    )
    from k3.model.moe import MoE

    layer = MoE(made.text, torch.bfloat16, "packed")
    generator = torch.Generator().manual_seed(0)
    for name, p in layer.named_parameters():
        p.detach().uniform_(-1, 1, generator=generator)
        assert name
    for name, b in layer.named_buffers():
        top = (120, 128) if "scale" in name else (0, 256)
        b.random_(*top, generator=generator)
    report = channel.moe(layer, made.text, 3).check(seeds=1, covering=False)
    assert report, report


def test_decoder_prefill_and_decode():
    report = checks.pair("decoder").check(order="hash", covering=False, seeds=1)
    assert report, report
    assert report.cut_points == 4 * 7 + 2
    assert report.bound <= 1e-4, "of one seed; three give its cube"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["decoder", "draft"])
def test_three_seeds_and_both_orders(name):
    report = checks.pair(name).check(order=("shadow", "hash"))
    assert report, report
    assert report.bound <= 1e-6
    assert "computed" not in report.readings.values()


def slow(name, make):
    return pytest.param(name, make, marks=pytest.mark.slow, id=name)


DECODERS = [
    pytest.param("whole", lambda m: decoder.whole(m, checks.IDS[:4]), id="whole"),
    pytest.param(
        "packed", lambda m: decoder.packed(m, [checks.IDS[:2], [7]]), id="packed"
    ),
    slow("packed more", lambda m: decoder.packed(m, [checks.IDS, [7], checks.IDS[3:]])),
    slow("streaming", lambda m: decoder.streaming(m, checks.IDS[:6])),
    pytest.param("draft", lambda m: checks.pair("draft"), id="draft"),
]


@pytest.mark.parametrize(("name", "make"), DECODERS)
def test_decoder(name, make):
    report = make(checks.model()).check(seeds=1, covering=name == "whole")
    assert report, report
    if name == "whole":
        untested = report.untested
        assert untested["weights.model.language_model.model.norm.weight"][0] == 0
        shown = "weights.model.language_model.model.embed_tokens.weight (399 of 427)"
        assert shown in str(report)


@pytest.mark.slow
def test_the_tiny_release():
    """The golden checkpoint as it is loaded: bf16 trunk, packed experts, 7 layers."""
    from k3.checkpoint import load

    model = load.load(small.TINY, experts="packed")
    report = decoder.chunked(model, [3, 141, 59], [2, 1]).check(seeds=1, covering=False)
    assert report, report


@pytest.mark.slow
def test_features_in_the_decoder():
    model = checks.model()
    token = model.config.media_placeholder_token_id
    rows = torch.randn(2, 7, generator=torch.Generator().manual_seed(0))
    report = decoder.features(model, [2, token, token], rows).check(
        seeds=1, covering=False
    )
    assert report, report


def test_our_cuts_change_nothing_in_the_reference():
    run, model = Reference(Tower(31, 3, 0)), checks.model()
    weights = {n: run.draw(n, p.detach()) for n, p in model.named_parameters()}
    from k3.verify.exact.cut import keep
    from k3.verify.exact.pairs.layout import checkpoint_names

    named = checkpoint_names(weights)
    ours = decoder.Sequencer(named, model, keep)(checks.IDS[:3])
    theirs = spec.logits(named, model.config.text, checks.IDS[:3])
    assert (ours.c[0] == theirs.c[0]).all()


GRADIENTS = {
    "chunk": lambda: kda.memory("chunk", (18,), K=3, V=2),
    "recurrent": lambda: kda.memory("recurrent", (5,)),
    "gate": kda.gate,
    "convolution": kda.short_conv,
    "attention": lambda: mla.expanded(4, 4),
    "attention in passes": lambda: mla.expanded(2, 4, workspace=2),
    "norm": channel.rms_norm,
    "SiTU": channel.situ_pair,
    "depth mix": channel.mix,
    "MoE": lambda: layers()["MoE"],
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    pair = GRADIENTS[name]()
    report = gradient(pair.program, pair.reference, pair.inputs, seeds=1, order="hash")
    assert report, report


@pytest.mark.slow
def test_decoder_gradients():
    pair = decoder.whole(checks.model(), checks.IDS[:3])
    report = gradient(pair.program, pair.reference, pair.inputs, seeds=1, bits=31)
    assert report, report


def test_a_wrong_gradient_is_named():
    class Stopped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = (torch.nn.Parameter(torch.ones(3)) for _ in "ab")

        def forward(self, x):
            return x * self.a * self.b.detach() + self.b

    def reference(weights, x):
        return x * weights["a"] * weights["b"] + weights["b"]

    report = gradient(Stopped(), reference, {"x": torch.ones(3)})
    assert not report
    assert report.first == "gradient of weights.b"
