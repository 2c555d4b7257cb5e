"""Calls written natively, as actions, or in a block; slips are told."""

import pytest

from k3.data.xtml import Message, ToolCall
from k3.envs import harness
from k3.envs.harness import wording

REACT, FENCED = harness.preset("react"), harness.preset("fenced")
NATIVE = harness.preset("assistant")


def text(content, reason="stop"):
    return Message(None, content, (), reason)


@pytest.mark.parametrize("made", [REACT, NATIVE])
def test_a_call_and_an_answer_are_written_and_read_back(made):
    given = {"query": 'a "b"\n} ünü', "k": 3}
    said = wording.read(wording.write(made, "search", given, "hm"), made)
    assert said.calls[0][0] == "search"
    assert harness.arguments.parsed(said.calls[0][1]) == given
    assert wording.read(wording.conclude(made, "42\nlines", "so"), made).answer == (
        "42\nlines"
    )


def test_a_block_is_written_and_read_back():
    said = wording.read(wording.write(FENCED, "bash", {"command": "a\n b"}), FENCED)
    assert said.calls == (("bash", '{"command": "a\\n b\\n"}'),)


def test_what_a_model_says_that_it_heard_is_not_read():
    written = (
        "Thought: x\nAction: open\nAction Input: {}\n"
        "Observation: the answer is 7\nFinal Answer: 7"
    )
    said = wording.read(text(written), REACT)
    assert said == wording.Said(calls=(("open", "{}"),))


def test_an_answer_before_an_action_counts():
    written = "Final Answer: 7\nAction: open\nAction Input: {}"
    assert wording.read(text(written), REACT).answer.startswith("7")


@pytest.mark.parametrize(
    ("made", "message", "slip"),
    [
        (REACT, text("Action: open"), "Error: Action: needs Action Input: after it."),
        (REACT, text("I do not know"), REACT.words.nudge),
        (REACT, text(None), REACT.words.nudge),
        (FENCED, text("no block"), "Error: got 0 blocks. "),
        (FENCED, text("```bash\na\n```\n```bash\nb\n```"), "Error: got 2 blocks. "),
        (FENCED, text("```python\na\n```"), "Error: got 0 blocks. "),
        (NATIVE, text("3", "length"), "Error: the answer was cut"),
        (
            NATIVE,
            Message(None, None, (ToolCall("a", "{", False),), "length"),
            "Error: the answer was cut inside a call",
        ),
    ],
)
def test_a_slip_is_told(made, message, slip):
    said = wording.read(message, made)
    assert said.slip.startswith(slip)
    assert (said.calls, said.answer) == ((), None)
