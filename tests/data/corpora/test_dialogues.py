"""Dialogues of a package as conversations."""

import json

import pytest

from k3.data.corpora import dialogues
from k3.data.examples import of_conversation
from k3.errors import RequestError

YAML = """categories: [x]
conversations:
- - What is AI?
  - AI is "it".
- - only a question
- - one
  - 2
  - three
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "chatterbot_corpus" / "data" / "english"
    folder.mkdir(parents=True)
    (tmp_path / "chatterbot_corpus" / "__init__.py").write_text("raise ImportError")
    (folder / "ai.yml").write_text(YAML)
    (folder / "empty.yml").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_questions_and_answers_take_turns(package, tokenizer):
    corpus = dialogues.chatterbot()
    found = {d.name: json.loads(d.text) for d in (*corpus.train, *corpus.heldout)}
    assert set(found) == {"chatterbot:ai:0", "chatterbot:ai:2"}
    first, second = found["chatterbot:ai:0"], found["chatterbot:ai:2"]
    assert first["messages"][1] == {"role": "assistant", "content": 'AI is "it".'}
    assert [m["content"] for m in second["messages"]] == ["one", "2"]
    assert of_conversation(first["messages"], tokenizer, "chat").learned.any()
    assert (corpus.version, corpus.licence) == ("unknown", "BSD-3-Clause")


def test_what_is_not_installed_names_its_package():
    with pytest.raises(RequestError, match=r"; pip install chatterbot-corpus$"):
        dialogues.chatterbot()
