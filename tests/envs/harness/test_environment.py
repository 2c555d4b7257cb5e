"""A task under a harness: played, nudged, cut, ended; mistakes are told."""

import dataclasses

import pytest

from k3.data import xtml
from k3.data.xtml import Message, ToolCall
from k3.envs import harness
from k3.envs.environment import Environment, play
from k3.envs.harness import PRESETS, Harness, Harnessed, Memory, Tool

TOOLED = Harness(name="own", answer="tool")


def call(*calls):
    return Message(None, None, tuple(ToolCall(*one) for one in calls), "tool_calls")


def say(content):
    return Message(None, content, (), "stop")


@pytest.mark.parametrize("name", PRESETS)
def test_the_same_task_is_solved_under_every_preset(errand, name):
    played = Harnessed(errand, harness.preset(name))
    assert isinstance(played, Environment)
    seen = []

    def agent(messages):
        seen[:] = messages
        return played.solve(messages)

    assert play(played, played.through(agent)) == 1.0
    assert errand.closed == 1
    assert errand.done == [(3, "left")]
    xtml.render(seen, played.wanted, None)


@pytest.mark.parametrize("name", PRESETS)
def test_an_agent_that_says_nothing_is_nudged_and_ends_with_nothing(errand, name):
    made = harness.preset(name)
    turns = []

    def silent(messages):
        turns.append(messages[-1]["content"])
        return say("")

    assert play(Harnessed(errand, made), silent) == 0.0
    assert len(turns) <= made.nudges + 2


def test_a_slip_is_told_and_nothing_is_raised(errand):
    played = Harnessed(errand, TOOLED)
    heard = played.reply(
        call(
            ("openn", "{}"), ("open", "{"), ("open", '{"drawer": "3"}'), ("look", "{}")
        )
    )
    assert [m["role"] for m in heard] == ["tool"] * 4
    assert [m["tool_call_id"] for m in heard] == [f"turn0_{i}" for i in range(4)]
    assert all(m["content"].startswith("Error: ") for m in heard[:3])
    assert heard[3]["content"][0]["text"] == "six drawers"
    assert errand.done == []


def test_an_answer_ends_it_and_what_comes_with_it_is_not_done(errand):
    played = Harnessed(errand, TOOLED)
    both = call(("submit", '{"answer": "kado"}'), ("open", '{"drawer": 3}'))
    assert played.reply(both) is None
    assert errand.answer == "kado"
    assert errand.done == []


def test_text_is_no_answer_where_a_tool_takes_it(errand):
    played = Harnessed(errand, TOOLED)
    assert played.reply(say("kado"))[0]["content"] == TOOLED.words.nudge
    assert played.reply(say("kado")) is not None
    assert played.reply(say("kado")) is None
    assert errand.answer is None


def test_calls_beyond_the_most_of_an_answer_are_not_done(errand):
    played = Harnessed(errand, dataclasses.replace(TOOLED, calls=1))
    heard = played.reply(call(("open", '{"drawer": 1}'), ("open", '{"drawer": 2}')))
    assert errand.done == [(1, "left")]
    assert heard[1]["content"] == "Error: 1 calls an answer at most; not done."


def test_it_ends_after_its_turns(errand):
    played = Harnessed(errand, dataclasses.replace(TOOLED, turns=2))
    assert played.reply(call(("look", "{}"))) is not None
    assert played.reply(call(("look", "{}"))) is None


def test_a_call_that_was_cut_has_a_result_that_says_so(errand):
    played = Harnessed(errand, TOOLED)
    cut = Message(None, None, (ToolCall("open", '{"dr', False),), "length")
    heard = played.reply(cut)
    assert heard[0]["tool_call_id"] == "turn0_0"
    assert "cut inside a call" in heard[0]["content"]


def test_long_results_keep_their_ends(errand):
    played = Harnessed(errand, dataclasses.replace(TOOLED, output_chars=100))
    said = played.reply(call(("open", '{"drawer": 1}')))[0]["content"]
    assert said.startswith("nothing ")
    assert said.endswith("nothing ")
    assert "\n[... 220 characters left out ...]\n" in said


def test_notes_are_kept_shown_again_and_bounded(errand):
    memory = Memory(tool="Notes", most_chars=10)
    made = dataclasses.replace(TOOLED, memory=memory, system="Work.\n{memory}")
    played = Harnessed(errand, made)
    assert played.begin()[0]["content"] == "Work."
    heard = played.reply(
        call(("Notes", '{"notes": "3 = kado"}'), ("Notes", '{"notes": "far too long"}'))
    )
    assert heard[0]["content"] == "The notes are kept."
    assert "holds at most 10 characters: got 12" in heard[1]["content"]
    assert played.notes == "3 = kado"
    again = Harnessed(errand, made, notes=played.notes)
    assert again.begin()[0]["content"] == "Work.\nMEMORY.md:\n3 = kado"


def test_no_effort_is_no_thinking(errand):
    wanted = Harnessed(errand, TOOLED, effort=None).wanted
    assert (wanted.thinking, wanted.thinking_effort) == (False, None)
    assert Harnessed(errand, TOOLED, effort="low").wanted.thinking_effort == "low"


def test_calls_in_text_are_rendered_without_declarations(errand):
    played = Harnessed(errand, harness.preset("react"))
    assert played.wanted.tools == ()
    assert (
        "open(drawer: integer; side: string, optional): Open a drawer."
        in (played.begin()[0]["content"])
    )
    heard = played.reply(say('Action: open\nAction Input: {"drawer": 3}'))
    assert heard == [{"role": "user", "content": "Observation: kado"}]


def test_a_task_leaves_the_harnesss_own_names_alone(errand):
    errand.abilities["submit"] = errand.abilities["run"]
    with pytest.raises(ValueError, match="the harness's own"):
        Harnessed(errand, TOOLED)


def test_a_tool_of_its_own_may_fix_what_an_ability_takes(errand):
    tool = Tool(name="Right", ability="open", fixed={"side": "right"})
    played = Harnessed(errand, dataclasses.replace(TOOLED, tools=(tool,)))
    played.reply(call(("Right", '{"drawer": 3}')))
    assert errand.done == [(3, "right")]


def test_half_a_surrogate_pair_does_not_come_back(errand):
    played = Harnessed(errand, TOOLED)
    heard = played.reply(call(("run", '{"command": "\\ud800x"}')))
    assert heard[0]["content"] == "ran ?x"
