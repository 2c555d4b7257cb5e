"""Arithmetic: exact, the same everywhere, and not to be talked round."""

import pytest

from k3.data.tasks import lot
from k3.envs import harness
from k3.envs.environment import play
from k3.envs.harness import PRESETS, Harnessed
from k3.envs.tasks import arithmetic


def submits(answer):
    yield "compute", {"expression": "1 + 1"}
    return answer


@pytest.mark.parametrize("split", lot.SPLITS)
def test_the_perfect_agent_is_right_under_every_preset(split):
    for index in range(6):
        for name in PRESETS:
            played = Harnessed(arithmetic.make(split, index), harness.preset(name))
            assert play(played, harness.solver(played)) == 1.0


@pytest.mark.parametrize("index", range(5))
def test_cheaters_and_the_empty_get_nothing(index):
    task = arithmetic.make("train", index)
    asked = task.goal.split("What is ")[1].split("?")[0]
    right = str(arithmetic.value(asked))
    for cheat in (
        asked,
        f"{right} or {right}1",
        f"The answer is {right}.",
        f"{right}.0",
        "correct",
        " ".join(map(str, range(1000))),
        "",
    ):
        played = Harnessed(arithmetic.make("train", index), harness.preset("assistant"))
        assert play(played, harness.agent(played, submits(cheat))) == 0.0


def test_the_splits_have_no_question_in_common():
    train = {arithmetic.make("train", i).goal for i in range(60)}
    held = {arithmetic.make("heldout", i).goal for i in range(60)}
    assert not train & held


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("(2 + 3) * -4", "-20"),
        ("-7 // 2", "-4"),
        ("-7 % 2", "1"),
        ("1 // 0", "Error: integer division or modulo by zero"),
        ("2 ** 9", "Error: this is no expression"),
        ("True + 1", "Error: this is no expression"),
        ("0.5 + 1", "Error: this is no expression"),
        ("__import__('os').getcwd()", "Error: this is no expression"),
        ("1 +", "Error: invalid syntax"),
        ("9" * 500 + "9", "Error: an expression has at most 500 characters"),
        ("*".join(["99999"] * 80), "Error: a value has at most 200 digits"),
        ("(" * 499, "Error: "),
        ("", "Error: "),
        ("1\0", "Error: "),
    ],
)
def test_the_calculator_says_a_number_or_a_sentence(expression, said):
    assert arithmetic.compute(expression).startswith(said)
