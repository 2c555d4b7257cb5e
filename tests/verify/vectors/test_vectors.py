"""Vectors on disk: everything is there, described, hashed, and gives itself back."""

import hashlib
import json

import numpy as np
import pytest
import small
import torch

from k3.errors import RequestError
from k3.verify import compare
from k3.verify.operators import OPERATORS, find
from k3.verify.vectors import capture, export_model, export_operator


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator(name, tmp_path):
    written = export_operator(name, tmp_path / "v", dtype=torch.bfloat16, seed=4)
    assert json.loads((tmp_path / "v" / "manifest.json").read_text()) == written
    assert written["seed"] == 4
    assert written["dtype"] == "bfloat16"
    assert set(written["files"]) == {"inputs.npz", "float64.npz", "bfloat16.npz"}
    for file, about in written["files"].items():
        raw = (tmp_path / "v" / file).read_bytes()
        assert hashlib.sha256(raw).hexdigest() == about["sha256"]
        assert len(raw) == about["bytes"]
    wide = written["files"]["float64.npz"]["arrays"]
    for output in find(name).outputs:
        assert f"out.{output}" in wide
        assert f"out.{output}" in written["files"]["bfloat16.npz"]["arrays"]


def test_values_are_the_equations_on_the_rounded_inputs(tmp_path):
    export_operator("situ", tmp_path / "v", dtype=torch.bfloat16)
    with np.load(tmp_path / "v" / "inputs.npz") as file:
        bits = file["gate"]
        gate = torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16)
    given = find("situ").inputs()["gate"].to(torch.bfloat16)
    assert torch.equal(gate, given)
    with np.load(tmp_path / "v" / "float64.npz") as file:
        assert file["out.y"].dtype == np.float64
        cap = file["eq.situ.soft_cap.returns"]
    assert np.allclose(cap, 4 * np.tanh(given.double().numpy() / 4), rtol=1e-12)


def test_every_step_of_the_recurrence_is_there(tmp_path):
    export_operator("kda.recurrent", tmp_path / "v")
    with np.load(tmp_path / "v" / "float64.npz") as file:
        tokens, heads = 7, 3
        last = f"eq.kda.update[{tokens * heads - 1}].returns"
        assert np.allclose(file[last].T, file["out.final"][-1])
        assert file["mid.kda.step[6].error"].shape == (1, heads, 4)


def test_what_is_captured_ends_with_the_block():
    operator = find("rms_norm")
    with capture.intermediates() as found:
        operator.program(**operator.inputs())
    seen = len(found)
    operator.program(**operator.inputs())
    assert seen == len(found) > 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_model_reproduces_its_own_vectors(tmp_path, dtype):
    model = small.model(dtype)
    written = export_model(model, tmp_path / "v", tokens=9, seed=2)
    report = compare(model, tmp_path / "v" / "golden.npz")
    assert report.ok, report
    assert not report.unknown
    assert len(report.entries) > 20
    assert written["tokens"] == 9
    modules = written["files"]["modules.npz"]["arrays"]
    norms = [n for n in modules if n.endswith("layers.3.self_attn.q_a_layernorm")]
    assert modules[norms[0]]["shape"] == [1, 9, model.config.text.q_lora_rank]


def test_another_model_does_not(tmp_path):
    export_model(small.model(), tmp_path / "v", tokens=6)
    report = compare(small.model(seed=6), tmp_path / "v" / "golden.npz")
    assert report.first.name == "layers.0.self_attn"


def test_nothing_is_written_over(tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(RequestError, match="nothing is written over"):
        export_operator("situ", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
