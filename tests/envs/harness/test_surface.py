"""A harness's tools over a task's abilities: declared, meant, and back."""

import json

import pytest

from k3.envs.harness import Harness, Tool
from k3.envs.harness.surface import Surface
from k3.errors import RequestError

DRAWER = Tool(
    name="Pull",
    ability="open",
    words="Pull a drawer.",
    arguments={"number": "drawer"},
    says={"number": "From 1."},
    fixed={"side": "right"},
)
LINE = Tool(name="sh", ability="run", commands={"pull": "open"})


def surface(errand, **options):
    return Surface(Harness(name="own", **options), errand.abilities)


def test_names_words_and_arguments_are_the_harnesss(errand):
    made = surface(errand, tools=(DRAWER,))
    first, *others = [schema["function"] for schema in made.schemas]
    assert first == {
        "name": "Pull",
        "description": "Pull a drawer.",
        "parameters": {
            "type": "object",
            "properties": {"number": {"type": "integer", "description": "From 1."}},
            "required": ["number"],
            "additionalProperties": False,
        },
    }
    assert [other["name"] for other in others] == ["run", "look"]
    assert made.meant("Pull", '{"number": 3}') == (
        "open",
        {"drawer": 3, "side": "right"},
    )


def test_an_ability_is_left_out_or_made_a_command_as_the_harness_says(errand):
    assert list(surface(errand, rest="none", tools=(DRAWER,)).shown) == ["Pull"]
    bare = surface(errand, without=("run", "open"))
    assert list(bare.shown) == ["look"]
    line = surface(errand, rest="commands", tools=(LINE,))
    assert list(line.shown) == ["sh"]
    assert line.commands == {"pull": "open", "look": "look"}
    assert (
        "pull DRAWER [SIDE]: Open a drawer."
        in line.schemas[0]["function"]["description"]
    )


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("pull 3", ("open", {"drawer": 3})),
        ("  pull 3 left\n", ("open", {"drawer": 3, "side": "left"})),
        ("look", ("look", {})),
        ("ls -l 'a b'", ("run", {"command": "ls -l 'a b'"})),
        ("pulls 3", ("run", {"command": "pulls 3"})),
        ("", ("run", {"command": ""})),
    ],
)
def test_a_line_is_a_command_or_for_the_shell(errand, line, meant):
    made = surface(errand, rest="commands", tools=(LINE,))
    assert made.meant("sh", json.dumps({"command": line})) == meant


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("push", "{}", "Error: a tool is one of sh: got 'push'; call one of these."),
        ("sh", "{", "Error: the arguments must be a JSON object"),
        ("sh", "{}", "Error: sh: command must be given."),
        ("sh", '{"command": 3}', "Error: sh: command must be of type string; got 3."),
        ("sh", '{"command": "pull"}', "Error: pull: drawer must be given."),
        ("sh", '{"command": "pull x"}', "Error: pull: drawer must be of type integer"),
        ("sh", '{"command": "pull 3 up"}', "Error: pull: side must be one of"),
    ],
)
def test_a_call_that_means_nothing_is_a_sentence(errand, name, given, sentence):
    made = surface(errand, rest="commands", tools=(LINE,))
    assert made.meant(name, given).startswith(sentence)


def test_without_a_shell_there_are_only_the_commands(errand):
    made = surface(errand, rest="commands", tools=(LINE,), without=("run",))
    assert made.meant("sh", '{"command": "rm -rf /"}') == (
        "Error: a line begins with one of pull, look: got 'rm'; there are no other "
        "programs."
    )


def test_a_call_is_written_and_read_back(errand):
    renamed = Tool(name="Pull", ability="open", arguments={"number": "drawer"})
    for made in (
        surface(errand, tools=(renamed,)),
        surface(errand, rest="commands", tools=(LINE,)),
    ):
        for asked in (
            ("open", {"drawer": 2, "side": "left"}),
            ("look", {}),
            ("run", {"command": "echo 'x'\n y"}),
        ):
            name, given = made.call(*asked)
            assert made.meant(name, json.dumps(given)) == asked
    with pytest.raises(RequestError, match="must have a tool for 'look': got none"):
        surface(errand, rest="none").call("look", {})
