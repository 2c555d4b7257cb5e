"""Conversations from a file, line by line."""

import json

import pytest

from k3.data import conversations
from k3.data.images import pillow
from k3.data.limits import ImageLimits
from k3.errors import RequestError

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo."}]
SMALL = ImageLimits(patch_size=4)


@pytest.fixture
def read(tmp_path, tokenizer):
    def run(*records):
        lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
        (tmp_path / "f.jsonl").write_text("\n".join(lines))
        return conversations.read(tmp_path / "f.jsonl", tokenizer, SMALL)

    return run


def test_each_line_is_an_example_in_the_domain_of_its_effort(read, tokenizer):
    found = read(
        {"messages": TALK},
        "",
        {"messages": TALK, "thinking_effort": "low"},
        {"messages": TALK, "thinking": False},
        {"messages": TALK, "thinking_effort": None},
    )
    assert [e.domain for e in found] == ["sft:max", "sft:low", "sft:none", "sft:none"]
    assert "thinking_effort=low" in tokenizer.decode(found[1].ids)
    assert all("Yo." in tokenizer.decode(e.ids[e.learned]) for e in found)


def test_options_are_those_of_a_request(read, tokenizer):
    tool = {"type": "function", "function": {"name": "look"}}
    call = {"function": {"name": "look", "arguments": "{}"}}
    talk = [TALK[0], {"role": "assistant", "tool_calls": [call]}]
    (found,) = read({"messages": talk, "tools": [tool], "tool_choice": "required"})
    text = tokenizer.decode(found.ids)
    assert "# Tools" in text
    assert "tool_choice=required" in text
    assert "look" in tokenizer.decode(found.ids[found.learned])


def test_pictures_lie_beside_the_file(read, tmp_path):
    pillow().new("RGB", (8, 8)).save(tmp_path / "p.png")
    part = {"type": "image_url", "image_url": {"url": "p.png"}}
    talk = [{"role": "user", "content": [part]}, TALK[1]]
    (found,) = read({"messages": talk, "images": ["p.png"]})
    assert found.grids.tolist() == [[1, 2, 2]]


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ("{", "line 2: a line must be JSON"),
        ("[]", "line 2: a conversation is an object with messages: got list"),
        ({"message": TALK}, "line 2: a conversation is an object with messages"),
        ({"messages": TALK, "effort": "low"}, "line 2: effort is no key"),
        ({"messages": TALK, "thinking_effort": "medium"}, "line 2: thinking_effort"),
        ({"messages": TALK[:1]}, "line 2: messages must hold an answer"),
        ({"messages": TALK, "images": ["gone.png"]}, "line 2: an image must be a file"),
    ],
)
def test_the_first_wrong_line_is_named(read, record, told):
    with pytest.raises(RequestError, match=f"f.jsonl {told}"):
        read({"messages": TALK}, record)


def test_a_file_without_lines_is_refused(read, tmp_path, tokenizer):
    with pytest.raises(RequestError, match="got none; add lines"):
        read("", " ")
    with pytest.raises(RequestError, match="No such file"):
        conversations.read(tmp_path / "gone", tokenizer, SMALL)
