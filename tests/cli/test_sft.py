"""k3 sft: an adapter from a file of conversations."""

import json

import pytest

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo."}]
SHORT = ("--set", "steps=1", "--set", "tokens=500", "--set", "batch=1")


@pytest.fixture
def talks(tmp_path):
    path = tmp_path / "talks.jsonl"
    path.write_text(json.dumps({"messages": TALK}))
    return path


def test_an_adapter_is_trained_and_said_so(k3, checkpoint, talks, tmp_path, unchecked):
    found = k3(
        *("sft", checkpoint, "--data", talks, "--out", tmp_path / "o"),
        *("--lora", "q_b_proj,o_proj", "--rank", 2, *SHORT),
    )
    assert found.code == 0, found.err
    assert "1 steps on 1 conversations (none held out)" in found.out
    config = json.loads((tmp_path / "o" / "adapter_config.json").read_text())
    assert config["r"] == 2
    assert {t.rpartition(".")[2] for t in config["target_modules"]} == {
        "q_b_proj",
        "o_proj",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lora", "w1"], "holds routed experts"),
        (["--lora", ".*query"], "matches no linear layer"),
        (["--set", "tokens=9"], "tokens of 9; raise tokens"),
        (["--set", "speed=9"], "no setting 'speed' in recipe sft"),
    ],
)
def test_what_cannot_be_trained_is_a_sentence(
    k3, checkpoint, talks, tmp_path, arguments, message
):
    found = k3("sft", checkpoint, "--data", talks, "--out", tmp_path / "o", *arguments)
    assert found.code == 2
    assert message in found.err
