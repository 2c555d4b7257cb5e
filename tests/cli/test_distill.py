"""k3 distill: teachers by name and folder, and sentences for what cannot run."""

import pytest

SMALL = (
    *("--set", "thinking=False", "--set", "iterations=1", "--set", "prompts=1"),
    *("--set", "max_tokens=4", "--set", "heldout=1", "--set", "workers=1"),
)


def test_it_says_what_was_kept(k3, tmp_path):
    teacher = "agentic-low=tiny:calculator"
    found = k3("distill", "tiny", "--teacher", teacher, "--out", tmp_path / "o", *SMALL)
    assert found.code == 0, found.err
    assert "1 iterations, 4 tokens sampled, 4 learned from" in found.out
    said = "agentic-low: 0.0% before, 0.0% after; the teacher 0.0%, 100% of its gain"
    assert said in found.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing option '--teacher'"),
        (("--teacher", "agentic=tiny"), "a teacher is one of general"),
        (("--teacher", "agentic-low=tiny", "--limit", "0"), "limit must be above 0"),
        (("--teacher", "agentic-low=nowhere"), "nowhere"),
        (("--teacher", "agentic-low=tiny", "--set", "speed=9"), "no setting 'speed'"),
    ],
)
def test_what_cannot_run_is_a_sentence(k3, tmp_path, arguments, message):
    found = k3("distill", *arguments, "--out", tmp_path / "o")
    assert found.code == 2
    assert message in found.err
