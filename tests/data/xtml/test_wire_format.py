"""Every example of docs/wire-format.md."""

import json
import re
from pathlib import Path

import pytest

from k3.data import media, xtml

PAGE = Path(__file__).parents[3] / "docs" / "wire-format.md"
FENCED = re.compile(r"^(```|~~~)(\S+)([^\n]*)\n(.*?)^\1\n", re.M | re.S)
BLOCKS = [
    (kind, words.split(), body)
    for _, kind, words, body in FENCED.findall(PAGE.read_text("utf-8"))
]
PAIRS = list(zip(BLOCKS[::2], BLOCKS[1::2], strict=True))
RENDERED = [(a, b) for (kind, _, a), (_, _, b) in PAIRS if kind == "json"]
PARSED = [(words, a, b) for (kind, words, a), (_, _, b) in PAIRS if kind == "xtml"]


def wire(body):
    """The text itself: line breaks are for reading, arrows are newlines."""
    return body.replace("\n", "").replace("↵", "\n")


def test_the_page_has_examples_of_both_kinds():
    assert len(RENDERED) == 5
    assert len(PARSED) == 3


@pytest.mark.parametrize(("request_", "text"), RENDERED)
def test_prompts(request_, text, tokenizer):
    fields = json.loads(request_)
    messages = fields.pop("messages")
    images = [media.prompt_text(*size) for size in fields.pop("images", [])]
    prompt = xtml.render(messages, xtml.RenderOptions(**fields), images)
    assert prompt.text == wire(text)
    assert tokenizer.decode(prompt.encode(tokenizer)) == prompt.text


@pytest.mark.parametrize(("words", "text", "message"), PARSED)
def test_answers(words, text, message):
    reason = words[1] if len(words) > 1 else "stop"
    found = xtml.parse(wire(text), "think", reason)
    assert json.loads(message) == {
        "reasoning": found.reasoning,
        "content": found.content,
        "tool_calls": [[call.name, call.arguments] for call in found.tool_calls],
        "finish_reason": found.finish_reason,
        "problems": [problem.kind for problem in found.problems],
    }
