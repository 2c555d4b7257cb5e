"""What another replica may leave out of a stream, and when it may not go on."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.errors import RequestError
from k3.serve import transcript
from k3.serve.transcript import Transcript

NAMES = ("reasoning_content", "content")


def event(value):
    return f"data: {json.dumps(value)}\n\n".encode()


def chat(index=0, finish=None, uid="a", **delta):
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return event({"id": uid, "created": 1, "choices": [choice]})


def stream(uid, reasoning, content, cuts):
    """The same answer in pieces that are cut elsewhere."""
    yield chat(uid=uid, role="assistant", content="")
    for name, text in zip(NAMES, (reasoning, content), strict=True):
        at = sorted({0, len(text), *(c for c in cuts if c < len(text))})
        for start, stop in itertools.pairwise(at):
            yield chat(uid=uid, **{name: text[start:stop]})
    yield chat(uid=uid, finish="stop")
    yield event({"id": uid, "choices": [], "usage": {"total_tokens": 3}})
    yield b"data: [DONE]\n\n"


def read(events):
    texts, endings = dict.fromkeys(NAMES, ""), []
    for each in events:
        data = transcript.data(each)
        if data == transcript.DONE:
            endings.append("done")
            continue
        chunk = json.loads(data)
        assert chunk["id"] == "a"
        if chunk.get("usage"):
            endings.append("usage")
        for choice in chunk["choices"]:
            for name in NAMES:
                texts[name] += choice["delta"].get(name) or ""
            endings += filter(
                None, [choice["finish_reason"], choice["delta"].get("role")]
            )
    return texts, endings


CUTS = st.sets(st.integers(1, 12), max_size=5)


@settings(max_examples=50)
@given(st.text(max_size=12), st.text(max_size=12), CUTS, CUTS, st.integers(0, 14))
def test_a_continued_stream_reads_like_one(reasoning, content, first, second, lost):
    one = list(stream("a", reasoning, content, first))
    whole = Transcript()
    wanted = read([whole.take(e) for e in one])
    sent = Transcript()
    got = [sent.take(e) for e in one[: min(lost, len(one) - 1)]]
    if lost:
        sent.replay()
        other = stream("b", reasoning, content, second)
    else:
        other = one
    got += [sent.take(e) for e in other]
    assert read([e for e in got if e]) == wanted


def test_a_difference_ends_it():
    for replayed in (
        [chat(content="Yes, but")],
        [chat(content="Ye"), chat(finish="stop")],
        [b"data: [DONE]\n\n"],
        [chat(reasoning="x", content="Y")],
    ):
        sent = Transcript()
        sent.take(chat(content="Yes."))
        assert sent.started
        sent.replay()
        with pytest.raises(RequestError, match="another one does not repeat"):
            list(map(sent.take, replayed))


def test_tool_calls_and_several_choices_are_told_apart():
    def call(arguments, name=None, place=0, uid="a"):
        function = {"arguments": arguments} | ({"name": name} if name else {})
        return chat(
            index=1, uid=uid, tool_calls=[{"index": place, "function": function}]
        )

    sent = Transcript()
    for each in (call("", "f"), call('{"a"'), chat(content="x", finish="stop")):
        assert sent.take(each) == each
    sent.replay()
    assert sent.take(call("", "f", uid="b")) == b""
    rest = json.loads(transcript.data(sent.take(call('{"a": 1}', uid="b"))))
    (held,) = rest["choices"][0]["delta"]["tool_calls"]
    assert (held["function"]["arguments"], rest["id"]) == (": 1}", "a")
    assert sent.take(chat(content="x", finish="stop", uid="b")) == b""
    assert b'"g"' in sent.take(call("", "g", place=1, uid="b"))


def test_pings_and_other_events_pass():
    sent = Transcript()
    for each in (b": ping\n\n", b"data: not json\n\n", event({"error": {"type": "x"}})):
        assert sent.take(each) == each
    assert not sent.started
    assert transcript.data(b": ping\n\n") == ""
    assert transcript.data(b"event: e\ndata: a\ndata: b\n\n") == "a\nb"


def test_which_requests_and_which_errors():
    assert transcript.repeatable({"temperature": 0})
    assert transcript.repeatable({"seed": 0, "temperature": 1.0})
    assert not transcript.repeatable({"temperature": 1.0})
    assert not transcript.repeatable({"seed": 1, "logprobs": True})
    assert transcript.is_failure(event({"error": {"type": "server_error"}}))
    assert not transcript.is_failure(event({"error": {"type": "invalid"}}))
    assert not transcript.is_failure(chat(content="error"))
