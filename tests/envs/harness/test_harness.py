"""Harnesses that cannot work are refused, all reasons at once."""

import pytest

from k3.envs.harness import Context, Harness, Memory, Tool, Words
from k3.errors import ConfigError

RUN = Tool(name="sh", ability="run")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"format": "xml"}, "format must be one of native, react, fenced: got 'xml'"),
        ({"answer": "mail"}, "answer must be one of text, tool: got 'mail'"),
        ({"rest": "all"}, "rest must be one of tools, commands, none: got 'all'"),
        ({"context": Context(over=("tools",))}, "over must be one of .*: got 'tools'"),
        ({"context": Context(always=("turns",))}, "always must be one of reasoning, r"),
        ({"context": Context(most_chars=10)}, "most_chars must be .* at least 1000"),
        ({"turns": 0}, "turns must be a whole number of at least 1: got 0"),
        ({"output_chars": 1}, "output_chars must be .* at least 100: got 1"),
        ({"tools": (RUN, RUN)}, "tools must have names of their own: got sh, sh"),
        ({"tools": (RUN,), "memory": Memory(tool="sh")}, "names of their own"),
        ({"rest": "commands"}, "rest 'commands' needs a tool with commands"),
        ({"format": "fenced"}, "format 'fenced' needs a tool with commands"),
        ({"format": "react"}, "system must say {tools}"),
        ({"words": Words(result="said")}, "result must say {result} once: got 'said'"),
    ],
)
def test_it_is_refused(options, sentence):
    with pytest.raises(ConfigError, match=sentence):
        Harness(name="own", **options)


def test_all_reasons_are_named_at_once():
    with pytest.raises(ConfigError, match=r"harness 'own': format .*; turns .*"):
        Harness(name="own", format="xml", turns=-1)
