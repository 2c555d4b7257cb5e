"""Every kind of module lies in its ball, a wrong one does not, bad input is refused."""

import json

import kills
import pytest
import torch
from torch import nn

from k3.errors import RequestError, ShapeError
from k3.kernels import situ
from k3.model.cache import MLACache
from k3.model.kda import KDA
from k3.model.linear import RMSNorm
from k3.model.mla import MLA
from k3.verify import enclose
from k3.verify.enclose.capture import Retrieval

DTYPES = [torch.float32, torch.bfloat16]
T = 5


def draw(*shape, seed=0, dtype=torch.float32, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(*shape, generator=generator)).to(dtype)


def calls(dtype, std=0.3):
    """A module of each kind on odd sizes, with what it is called with."""
    running = kills.model(std, dtype)
    text = running.language_model
    first, last = text.model.layers[0], text.model.layers[3]
    x = draw(2, T, 7, dtype=dtype)
    kda = first.self_attn.init_cache(2, x)
    kda.state, kda.window = draw(2, 2, 4, 4, seed=1), draw(2, 3, 24, seed=2).to(dtype)
    rows = MLACache(rows=draw(2, 3, 7, seed=3, dtype=dtype), lens=(3, 3))
    mix = Retrieval(last.mlp_res_norm, last.mlp_res_proj, 1e-5, dtype)
    blocks = [draw(2, T, 7, seed=s) for s in (4, 5, 6)]
    return {
        "RMSNorm": (first.input_layernorm, x),
        "KDA": (first.self_attn, x),
        "KDA with its state": (first.self_attn, x, kda, None),
        "MLA": (last.self_attn, x),
        "MLA with rows": (last.self_attn, x, rows, None),
        "AttnRes": (mix, blocks, x),
        "AttnRes without a sum": (mix, blocks[:2], None),
        "dense": (first.mlp, x),
        "MoE": (last.block_sparse_moe, x),
        "SiTU": (situ.situ, x, 3 * x, 4.0, 25.0),
        "lm_head": (text.lm_head, x),
        "biased": (nn.Linear(7, 3).to(dtype), x),
    }


KINDS = list(calls(torch.float32))


@pytest.mark.parametrize("dtype", DTYPES, ids=["fp32", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_module_and_its_equation_lie_in_their_balls(kind, dtype):
    report = enclose.module(*calls(dtype)[kind])
    assert report, report
    assert report.equation, "the equation was not checked"
    assert report.machine[0].entries == report.equation[0].entries > 0
    assert 0 < report.error < float(report.ball.r.max())
    assert report.dtype == str(dtype).removeprefix("torch.")
    assert not any(p.vacuous for p in report.machine)
    assert (report.routes > 0) == (kind == "MoE")


def test_what_a_module_leaves_in_its_cache_is_enclosed_too():
    given = calls(torch.float32)
    kda = enclose.module(*given["KDA with its state"])
    assert [p.name for p in kda.machine] == ["out", "state", "window"]
    assert [p.name for p in kda.equation] == ["out", "state", "window"]
    mla = enclose.module(*given["MLA with rows"])
    assert [p.name for p in mla.equation] == ["out", "rows"]


def test_inputs_and_caches_are_not_changed():
    module, x, cache, lens = calls(torch.float32)["MLA with rows"]
    before = x.clone(), cache.rows.clone(), cache.lens
    enclose.module(module, x, cache, lens)
    assert torch.equal(x, before[0])
    assert torch.equal(cache.rows, before[1])
    assert cache.lens == before[2]


def test_a_wrong_value_is_outside_and_named():
    module, x = calls(torch.float32)["dense"]
    out = module(x).detach()
    out[1, 2, 3] += 1e-3
    report = enclose.module(module, x, got=out)
    assert not report
    assert report.worst.startswith("machine out: OUTSIDE in 1 of 70, at [1, 2, 3]")
    assert report.machine[0].got == pytest.approx(float(out[1, 2, 3]))
    poisoned = torch.full_like(out, torch.nan)
    assert enclose.module(module, x, got=poisoned).machine[0].outside == 70


def test_a_wrong_program_is_no_longer_its_equation():
    mutant = next(m for m in kills.INSIDE if m.name == "gate not capped")
    given, running = calls(torch.float32)["dense"], kills.model(0.3, torch.float32)
    with kills.mutated(mutant, running):
        report = enclose.module(*given)
    assert not report
    assert not report.machine[0].outside
    assert "equation out: OUTSIDE" in report.worst


def test_a_near_tie_is_followed_and_told():
    module, x = calls(torch.bfloat16)["MoE"]
    scores = torch.sigmoid(x[0, 0].float() @ module.gate.weight.float().T)
    # All scores equal to the last bits: any three experts may be taken.
    module.gate.e_score_correction_bias.data = -scores.detach()
    report = enclose.module(module, x)
    assert report, report
    assert report.certain < report.routes == 2 * T


def test_balls_print_and_are_json():
    report = enclose.module(*calls(torch.float32)["MoE"], name="layers.3.moe")
    text = str(report)
    assert text.startswith("inside layers.3.moe (MoE, float32)")
    assert f"routes certain: {2 * T} of {2 * T}" in text
    assert "assumed: library functions (exp, tanh, sigmoid, rsqrt, ...)" in text
    values = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert values["ok"]
    assert values["machine"][0]["name"] == "out"


def test_an_unknown_program_has_a_ball_and_no_equation():
    report = enclose.module(lambda x: (x.exp(), {"sum": x.sum(-1)}), draw(3, 5))
    assert report
    assert report.equation is None
    assert [p.name for p in report.machine] == ["out[0]", "out[1].sum"]
    assert "not checked: the spec has none for this program" in str(report)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_numbers_that_are_not_finite_are_refused(bad):
    x, norm = draw(2, 7), RMSNorm(7, 1e-5, torch.float32)
    x[1, 3] = bad
    with pytest.raises(RequestError, match=r"finite numbers: got .* at \[1, 3\]"):
        enclose.module(norm, x)
    norm.weight.data[2] = bad
    with pytest.raises(RequestError, match="mend the input or weight"):
        enclose.module(norm, draw(2, 7))


def test_nothing_is_enclosed_without_alarm():
    norm = RMSNorm(7, 1e-5, torch.float32)
    report = enclose.module(norm, torch.zeros(2, 0, 7))
    assert report
    assert report.machine[0].entries == 0
    assert report.equation is None


def test_inputs_without_a_rounding_model_are_refused():
    norm = RMSNorm(7, 1e-5, torch.float32)
    narrow = draw(2, 7).to(torch.float8_e4m3fn)
    with pytest.raises(RequestError, match="a rounding model exists for float64, fl"):
        enclose.module(norm, narrow)
    with pytest.raises(RequestError, match="an input of floating-point numbers"):
        enclose.module(lambda x: x, torch.zeros(2, dtype=torch.int64))
    with pytest.raises(RequestError, match="makes floating-point tensors: got none"):
        enclose.module(lambda x: x.shape, draw(2))


def test_another_device_is_refused():
    norm = RMSNorm(7, 1e-5, torch.float32)
    with pytest.raises(RequestError, match="on the CPU: got a tensor on meta"):
        enclose.module(norm, torch.zeros(2, 7, device="meta"))
    with pytest.raises(RequestError, match="runs on the CPU: got a model on meta"):
        enclose.run(kills.model(0.3, torch.float32).to("meta"), [1])


def test_values_of_another_shape_or_name_are_refused():
    norm, x = RMSNorm(7, 1e-5, torch.float32), draw(2, 7)
    with pytest.raises(ShapeError, match=r"shape of its ball, \(2, 7\): got \(7,\)"):
        enclose.module(norm, x, got=x[0])
    with pytest.raises(RequestError, match=r"some of \['out'\]: got \['y'\]"):
        enclose.module(norm, x, got={"y": x})
    with pytest.raises(RequestError, match="got none"):
        enclose.module(norm, x, got={})


def test_inference_mode_and_packed_sequences():
    module, x = calls(torch.float32)["MLA"]
    with torch.inference_mode():
        assert enclose.module(module, x)
    cache = module.init_cache(2, x)
    report = enclose.module(module, x[:1], cache, (2, 3))
    assert report
    assert report.equation is None


def test_the_kinds_are_all_modules_of_the_decoder():
    found = {type(c.program) for c in kills.run(kills.model(0.3, torch.float32))}
    assert {KDA, MLA, RMSNorm, Retrieval, nn.Linear} < found
