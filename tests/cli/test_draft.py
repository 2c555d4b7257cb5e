"""k3 draft: from a checkpoint and data to a folder that a server reads."""

import json

import pytest

from k3.checkpoint import draft as folder
from k3.cli.draft import KEYS
from k3.train import draft_run

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo."}]
SHORT = ("--set", "steps=2", "--set", "tokens=400", "--set", "batch=1")
FEW = ("--set", "log_steps=1", "--set", "num_speculative_steps=2")
TAPS = ("--set", "taps_of=layer", "--set", "taps=[0, 1, 3]")

FILES = ["config.json", "loss.svg", "metrics.jsonl", "model.safetensors"]


@pytest.fixture
def talks(tmp_path):
    path = tmp_path / "talks.jsonl"
    path.write_text(json.dumps({"messages": TALK}))
    return path


def test_the_settings_are_those_that_are_read():
    assert KEYS == draft_run.SETTINGS


def test_a_draft_is_trained_and_written(
    k3, checkpoint, talks, tmp_path, unchecked, monkeypatch
):
    monkeypatch.setattr(draft_run, "HELD_ROWS", 1)
    asked = ("draft", checkpoint, "--data", talks, *SHORT, *FEW, *TAPS)
    found = k3(*asked, "--out", tmp_path / "o")
    assert found.code == 0, found.err
    assert "step 2/2 loss" in found.err
    assert "try: k3 serve --speculative-config" in found.out
    made = folder.load(tmp_path / "o")
    assert made.config.layers == (0, 1, 3)
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == FILES
    lines = (tmp_path / "o" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2]
    assert (tmp_path / "o" / "loss.svg").read_text().startswith("<svg")
    again = k3(*asked, "--out", tmp_path / "o", "--json")
    assert again.code == 2
    assert "a run starts in an empty directory" in again.json["error"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "speed=9"], "--set needs a key that exists: got speed"),
        (["--set", "steps=0"], "steps must be at least 1: got 0"),
        (["--data", "nothing"], "data is a .jsonl file, a folder of k3 data, text"),
        (["--data", "gone.jsonl"], "conversations are read from a file: gone.jsonl"),
        (["--set", "taps=[0, 0, 1]", *TAPS[:2]], "taps must be three different ones"),
        (["--data", "chat", "--set", "tokens=9"], "raise tokens"),
    ],
)
def test_what_cannot_be_trained_is_a_sentence(
    k3, checkpoint, tmp_path, arguments, message
):
    given = arguments if "--data" in arguments else [*arguments, "--data", "chat"]
    found = k3("draft", checkpoint, "--out", tmp_path / "o", *TAPS, *given)
    assert found.code == 2
    assert message in found.err
    assert not (tmp_path / "o").exists()
