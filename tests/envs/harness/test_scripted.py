"""Scripts of abilities become agents under any harness."""

import pytest

from k3.envs import harness
from k3.envs.environment import play
from k3.envs.harness import PRESETS, Harnessed
from k3.errors import RequestError


@pytest.mark.parametrize("name", PRESETS)
def test_a_script_is_told_what_the_tool_said_and_no_more(errand, name):
    heard = []

    def steps():
        heard.append((yield "open", {"drawer": 3, "side": "left"}))
        heard.append((yield "run", {"command": "pwd"}))
        return "no idea"

    played = Harnessed(errand, harness.preset(name))
    assert play(played, harness.agent(played, steps())) == 0.0
    assert heard[0] == "kado"
    assert heard[1].strip() == "ran pwd"
    assert errand.answer == "no idea"


def test_a_script_that_asks_for_what_no_tool_does_is_a_sentence(errand):
    def steps():
        yield "fly", {}
        return ""

    played = Harnessed(errand, harness.preset("react"))
    with pytest.raises(RequestError, match="must have a tool for 'fly'"):
        play(played, harness.agent(played, steps()))
