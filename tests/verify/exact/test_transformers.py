"""transformers' Kimi-Linear layers: equal to the equations, or the difference named."""

import pytest
import torch

from k3.verify.exact.pairs import transformers as pairs

pytestmark = pytest.mark.filterwarnings("ignore")
SIZES = {
    "hidden_size": 7,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "linear_head_dim": 3,
    "linear_num_heads": 2,
    "kv_lora_rank": 5,
    "qk_rope_head_dim": 2,
    "qk_nope_head_dim": 3,
    "v_head_dim": 4,
    "num_hidden_layers": 5,
}


@pytest.fixture(scope="module")
def theirs():
    from transformers.models.kimi_linear import modeling_kimi_linear

    return modeling_kimi_linear


@pytest.fixture(scope="module")
def config(theirs):
    def make(**changed):
        made = theirs.KimiLinearConfig(**(SIZES | changed))
        made._attn_implementation = "eager"
        return made

    return make


def drawn(layer):
    torch.manual_seed(0)
    with torch.no_grad():
        for p in layer.parameters():
            p.uniform_(-0.5, 0.5)
    return layer


def test_kda_is_kimi_linears_equation(theirs, config):
    layer = drawn(theirs.KimiLinearDeltaAttention(config(), 0))
    report = pairs.delta_attention(layer, 3).check(seeds=1)
    assert report, report
    left = {name: n for name, (n, _) in report.untested.items() if n}
    # In three tokens the oldest of four taps has nothing to see.
    assert left == {"weights.layer.conv1d.weight": 18}


def test_kda_has_no_floor_under_its_gate(theirs, config):
    layer = drawn(theirs.KimiLinearDeltaAttention(config(), 0))
    report = pairs.delta_attention(layer, 2, floor=-5).check(seeds=1, covering=False)
    assert report.verdict == "DIFFERENT"
    assert report.place.function == "forward"
    assert "kimi_linear" in report.place.file


def test_mla_is_eq_7_without_its_gate(theirs, config):
    layer = drawn(theirs.KimiLinearAttention(config(q_lora_rank=None), 4))
    assert pairs.attention(layer, 3).check(seeds=1)


def test_mla_with_latent_queries_has_the_same_eps(theirs, config):
    layer = drawn(theirs.KimiLinearAttention(config(q_lora_rank=4), 4))
    report = pairs.attention(layer, 3).check(seeds=1, covering=False)
    assert report, report
    assert report.readings[1e-06] == "1/1000000"


def test_mla_has_no_output_gate(theirs, config):
    layer = drawn(theirs.KimiLinearAttention(config(q_lora_rank=None), 4))
    report = pairs.attention(layer, 2, gated=True).check(seeds=1, covering=False)
    assert not report
    assert report.difference.program == pytest.approx(2 * report.difference.reference)
