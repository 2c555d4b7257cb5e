"""k3 vectors: the list, the files, and what every option changes."""

import json

import numpy as np


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def test_the_list(k3):
    found = k3("vectors", "list")
    assert "kda.chunk            Eq. 4" in found.out
    assert "(q, k, v, g, beta, state) -> out, final" in found.out
    assert k3("vectors", "list", "--json").json["situ"]["layouts"]["gate"] == "... F"


def test_an_operator_with_dtype_and_seed(k3, tmp_path):
    found = k3("vectors", "export", "situ", tmp_path / "a")
    assert found.code == 0
    assert "inputs.npz" in found.out
    k3("vectors", "export", "situ", tmp_path / "b", "--seed", "1")
    with np.load(tmp_path / "a" / "inputs.npz") as a:
        assert a["gate"].dtype == np.float32
        with np.load(tmp_path / "b" / "inputs.npz") as b:
            assert (a["gate"] != b["gate"]).any()
    words = ("vectors", "export", "situ", tmp_path / "c", "--dtype", "bfloat16")
    assert k3(*words, "--json").json["dtype"] == "bfloat16"
    assert manifest(tmp_path / "c")["files"]["bfloat16.npz"]["sha256"]


def test_a_model_gives_its_own_golden_numbers(k3, golden, tmp_path):
    words = ("vectors", "export", golden, tmp_path / "v", "--tokens", "6")
    assert k3(*words, "--json").json["tokens"] == 6
    again = k3("compare", golden, tmp_path / "v" / "golden.npz")
    assert again.code == 0, again.out


def test_what_cannot_be_is_refused(k3, tmp_path):
    assert "takes list, or export" in k3("vectors", "export", "situ").err
    assert "did you mean situ" in k3("vectors", "export", "situu", tmp_path / "x").err
    (tmp_path / "file").write_text("mine")
    assert "nothing is written over" in k3("vectors", "export", "situ", tmp_path).err
    assert "--dtype must be" in k3("vectors", "list", "--dtype", "int8").err
