"""A harness is data: what it may say is known, and what it may not is refused."""

import dataclasses
import json
import re
import tomllib
from pathlib import Path

import pytest

from k3.envs import harness
from k3.envs.harness import PRESETS, Harness
from k3.errors import ConfigError

ROOT = Path(__file__).parents[3]
LINE = {"name": "sh", "ability": "run", "commands": {"submit": "submit"}}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_named_as_its_file_and_comes_back_from_json(name, tmp_path):
    made = harness.preset(name)
    assert made.name == name
    path = tmp_path / "own.json"
    path.write_text(json.dumps(dataclasses.asdict(made)))
    assert harness.load(path) == made


def test_a_file_of_toml_is_read(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('name = "own"\n[[tools]]\nname = "sh"\nability = "run"\n')
    assert harness.load(path).tools[0].ability == "run"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({}, "harness must say name"),
        ([], r"harness must be a table: got \[\]"),
        ({"name": "x", "colour": 1}, "harness has name, .*: got colour; remove it"),
        ({"name": 3}, "harness.name must be str: got 3"),
        ({"name": "x", "tools": "sh"}, "harness.tools must be a list: got 'sh'"),
        ({"name": "x", "tools": [{"name": "a"}]}, r"tools\[0\] must say ability"),
        (
            {
                "name": "x",
                "tools": [{"name": "a", "ability": "b", "fixed": {"c": 1.5}}],
            },
            r"tools\[0\].fixed.c must be str or int: got 1.5",
        ),
        ({"name": "x", "turns": True}, "harness.turns must be int: got True"),
        ({"name": "x", "words": {"shout": "!"}}, "harness.words has .*: got shout"),
        ({"name": "x", "memory": {}}, "harness.memory must say tool"),
    ],
)
def test_data_that_is_no_harness_is_a_sentence(data, sentence):
    with pytest.raises(ConfigError, match=sentence):
        harness.of(data)


def test_files_that_are_none_are_sentences(tmp_path):
    with pytest.raises(ConfigError, match=r"a \.toml or \.json file: got own\.yaml"):
        harness.load(tmp_path / "own.yaml")
    with pytest.raises(ConfigError, match="a file that can be read"):
        harness.load(tmp_path / "own.toml")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ConfigError, match="a file that can be read"):
        harness.load(tmp_path / "bad.json")
    with pytest.raises(ConfigError, match=r"a harness is one of .*got 'vim'"):
        harness.preset("vim")


def test_no_memory_is_none_and_a_line_of_commands_is_found():
    made = harness.of({"name": "x", "memory": None, "tools": [LINE]})
    assert made.memory is None
    assert made.line is made.tools[0]
    assert Harness(name="y").line is None


def test_the_harness_of_the_docs_loads():
    text = (ROOT / "docs" / "environments.md").read_text()
    (block,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    made = harness.of(tomllib.loads(block))
    assert made.tools[0].arguments == {"file": "name", "offset": "start"}
