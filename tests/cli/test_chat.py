"""k3 chat: lines of a pipe in, continuations out."""

import io
import json

import pytest


@pytest.fixture
def typed(monkeypatch):
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_each_line_is_continued_with_what_came_before(k3, checkpoint, typed):
    arguments = ["chat", checkpoint, "--temperature", 0, "--max-tokens", 3, "--json"]
    typed("ab\n\ncd\n")
    first, second = map(json.loads, k3(*arguments).out.splitlines())
    typed("ab\n/reset\ncd\n")
    alone = json.loads(k3(*arguments).out.splitlines()[1])
    assert len(first["ids"]) == len(second["ids"]) == 3
    prompt = ",".join(map(str, [97, 98, *first["ids"], 99, 100]))
    again = k3("generate", checkpoint, "--ids", prompt, *arguments[2:])
    assert again.json["completions"][0]["ids"] == second["ids"]
    reset = k3("generate", checkpoint, "-p", "cd", *arguments[2:])
    assert reset.json["completions"][0]["ids"] == alone["ids"]


def test_quit_ends_before_the_lines_do(k3, checkpoint, typed):
    typed("/quit\nab\n")
    found = k3("chat", checkpoint)
    assert (found.code, found.out) == (0, "")


def test_plain_answers_end_with_their_line(k3, checkpoint, typed):
    typed("ab")
    found = k3("chat", checkpoint, "--max-tokens", 2)
    assert found.out.endswith("\n")
    assert found.err == ""


def test_chat_needs_a_tokenizer(k3, golden, typed):
    typed("ab\n")
    found = k3("chat", golden)
    assert found.code == 2
    assert "text needs a tokenizer" in found.err


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_goes_on_after_a_refusal_with_an_empty_context(
    k3, checkpoint, monkeypatch
):
    monkeypatch.setattr("sys.stdin", Terminal(f"{'long ' * 4000}\nab\n"))
    arguments = ["chat", checkpoint, "--temperature", 0, "--max-tokens", 3, "--json"]
    found = k3(*arguments)
    assert found.code == 0
    alone = k3("generate", checkpoint, "-p", "ab", *arguments[2:]).json
    assert json.loads(found.out)["ids"] == alone["completions"][0]["ids"]


def test_a_pipe_ends_at_a_refusal(k3, checkpoint, typed):
    typed(f"{'long ' * 4000}\nab\n")
    found = k3("chat", checkpoint)
    assert found.code == 2
    assert "must fit max_position_embeddings" in found.err


def test_answers_of_a_pipe_stand_under_their_lines(k3, checkpoint, typed):
    typed("ab\ncd\n")
    found = k3("chat", checkpoint, "--max-tokens", 2)
    assert found.out.startswith("== ab\n")
    assert "\n== cd\n" in found.out


def test_a_pipe_that_is_no_text_is_refused(k3, checkpoint, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(b"\xff\n"), encoding="utf-8")
    monkeypatch.setattr("sys.stdin", stream)
    found = k3("chat", checkpoint)
    assert found.code == 2
    assert "standard input must be text in utf-8" in found.err


def test_the_help_says_that_json_is_a_value_a_line(k3, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert "one JSON value a line" in k3("chat", "--help").out
