"""k3 rl: a recipe by name, settings, and sentences for what cannot run."""

import json

import pytest

SMALL = (
    *("--set", "tasks=calculator", "--set", "thinking=False"),
    *("--set", "iterations=1", "--set", "prompts=1", "--set", "samples=2"),
    *("--set", "max_tokens=8", "--set", "heldout=1", "--set", "workers=1"),
)


def test_it_says_what_was_learned(k3, tmp_path):
    found = k3("rl", "agentic-high", "tiny", "--out", tmp_path / "o", *SMALL)
    assert found.code == 0, found.err
    assert "1 iterations, 16 tokens sampled, 0 learned from" in found.out
    assert "calculator: 0.0% of 1 held-out instances before" in found.out
    again = (
        "rl",
        "agentic-high",
        "tiny",
        "--out",
        tmp_path / "o",
        "--resume",
        "--json",
    )
    found = k3(*again, *SMALL)
    assert json.loads(found.out)["iteration"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("agentic",), "RECIPE must be one of general-low"),
        (("agentic-low", "--set", "speed=9"), "no setting 'speed'"),
        (("agentic-low", "--set", "tasks=chess"), "an environment is one of"),
        (("agentic-low", "--push", "x {folder}"), "--push needs --server"),
        (("agentic-low", "--judge", "http://x"), "a judge needs a rubric"),
        (("agentic-low", "--verbose", "2"), "--verbose holds judged samples"),
        (("agentic-low", "--server", "http://127.0.0.1:1"), "with {folder} in it"),
    ],
)
def test_what_cannot_run_is_a_sentence(k3, tmp_path, arguments, message):
    found = k3("rl", *arguments, "--out", tmp_path / "o")
    assert found.code == 2
    assert message in found.err


def test_an_interrupted_run_says_how_it_goes_on(k3, tmp_path, monkeypatch):
    from k3.post import rl

    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(rl.Loop, "step", interrupted)
    found = k3("rl", "agentic-high", "tiny", "--out", tmp_path / "o", *SMALL)
    assert found.code == 130
    assert "holds iteration 0 of 1 and every finished sample" in found.err
    assert "--resume goes on" in found.err
