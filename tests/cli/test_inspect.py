"""k3 inspect: verdicts from headers, also where there are no weights."""

import json
from pathlib import Path


def test_a_good_checkpoint_is_exit_0(k3, golden):
    found = k3("inspect", golden, "--tokens", 1000, "--json")
    assert found.code == 0
    assert found.json["ok"] is True
    assert found.json["memory"]["context_tokens"] == 1000


def test_the_papers_config_needs_no_files(k3):
    found = k3("inspect", "paper")
    assert found.code == 0
    assert "2,779,931,837,184" in found.out
    assert "no weights here" in found.out


def test_a_config_file_alone_is_enough(k3, golden):
    assert k3("inspect", f"{golden}/config.json").code == 0


def test_a_wrong_config_is_exit_1_with_every_wrong_field(k3, golden, tmp_path):
    data = json.loads(Path(golden, "config.json").read_text())
    data["text_config"]["num_experts_per_token"] = 99
    data["text_config"]["rms_norm_eps"] = -1.0
    (tmp_path / "config.json").write_text(json.dumps(data))
    found = k3("inspect", tmp_path)
    assert found.code == 1
    assert "num_experts_per_token" in found.out
    assert "rms_norm_eps" in found.out


def test_weights_and_one_sequence_are_added_up(k3):
    found = k3("inspect", "released", "--tokens", "1M")
    last = found.out.splitlines()[-1].strip()
    assert last == (
        "1.56 TB of weights as stored + 28.10 GB for one sequence = 1.59 TB"
    )
    value = k3("inspect", "tiny", "--tokens", "2k", "--json").json
    assert value["run_bytes"] == (
        value["tensors"]["nbytes"] + value["memory"]["sequence_bytes"]
    )


def test_the_paper_has_one_layer_more_than_the_release(k3):
    assert "mtp, apart" in k3("inspect", "paper").out
    assert "mtp" not in k3("inspect", "released").out
