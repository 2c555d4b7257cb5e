"""A server as a speaker: what is sent, what is read, and what is asked again."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from k3.data.xtml import RenderOptions, ToolCall
from k3.errors import RequestError
from k3.post.speaker import ContextFull, Sampling, Usage
from k3.post.speaker_server import ServerSpeaker

TOOL = {"type": "function", "function": {"name": "f"}}
ASK = [{"role": "user", "content": "Hi"}]
ANSWER = {
    "choices": [
        {
            "message": {
                "content": "",
                "reasoning": "Hm.",
                "tool_calls": [
                    {"id": "c_0", "function": {"name": "f", "arguments": '{"a": 1}'}},
                    {"id": "c_1", "function": {"name": "f", "arguments": '{"a": '}},
                ],
            },
            "finish_reason": "tool_calls",
            "problems": ["index"],
        }
    ],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 8},
    },
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200, {"data": [{"id": "toy"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append((self.path, body, self.headers.get("authorization")))
        says = self.server.says
        self.reply(*(says.pop(0) if len(says) > 1 else says[0]))

    def reply(self, status, found):
        data = found.encode() if isinstance(found, str) else json.dumps(found).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    made.seen, made.says, made.slept = [], [(200, ANSWER)], []
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def speaker(server):
    url = f"http://127.0.0.1:{server.server_port}/v1/"
    made = ServerSpeaker(url, key="secret", sleep=server.slept.append)
    yield made
    made.close()


def test_a_conversation_is_sent_and_its_answer_read(server, speaker):
    wanted = RenderOptions(tools=[TOOL], thinking_effort="low", tool_choice="required")
    found = speaker.answer(ASK, wanted, Sampling(max_tokens=3, seed=5))
    ((path, body, key),) = server.seen
    assert (path, key) == ("/v1/chat/completions", "Bearer secret")
    assert body == {
        "model": "toy",
        "messages": ASK,
        "tools": [TOOL],
        "tool_choice": "required",
        "reasoning_effort": "low",
        "temperature": 1.0,
        "top_p": 0.95,
        "max_tokens": 3,
        "seed": 5,
    }
    message = found.message
    assert (message.reasoning, message.content) == ("Hm.", "")
    assert message.tool_calls == (
        ToolCall("f", '{"a": 1}'),
        ToolCall("f", '{"a": ', complete=False),
    )
    assert (message.finish_reason, message.problems[0].kind) == ("tool_calls", "index")
    assert found.usage == Usage(read=9, cached=8, written=4)


def test_thinking_is_turned_off_and_a_format_is_asked_for(server, speaker):
    form = {"type": "json_object"}
    speaker.answer(ASK, RenderOptions(thinking=False, response_format=form), Sampling())
    body = server.seen[0][1]
    assert body["chat_template_kwargs"] == {"thinking": False}
    assert body["response_format"] == form
    assert not {"reasoning_effort", "tools", "tool_choice"} & set(body)


def test_a_busy_server_is_asked_again_ever_later(server, speaker):
    server.says = [(429, "slow down"), (503, "loading"), (200, ANSWER)]
    assert speaker.answer(ASK, RenderOptions(), Sampling()).usage.written == 4
    assert server.slept == [1.0, 2.0]
    server.says = [(503, "loading")]
    with pytest.raises(RequestError, match="must answer: 503 loading, 5 times"):
        speaker.answer(ASK, RenderOptions(), Sampling())


@pytest.mark.parametrize(
    "words",
    [
        '{"error": {"code": "context_length_exceeded"}}',
        "This model's maximum context length is 8 tokens.",
    ],
)
def test_a_full_context_is_told_apart(server, speaker, words):
    server.says = [(400, words)]
    with pytest.raises(ContextFull, match="answers 400"):
        speaker.answer(ASK, RenderOptions(), Sampling())
    assert server.slept == []


@pytest.mark.parametrize(
    ("status", "found", "sentence"),
    [
        (400, "temperature is hot", "answers 400: temperature is hot"),
        (401, "context window", "answers 401"),
        (200, "hello", "must answer with a JSON object: got 'hello'"),
        (200, {"choices": []}, "must answer with a choice"),
        (200, {"choices": [{"message": None}]}, "must answer with a choice"),
    ],
)
def test_what_is_no_answer_is_said(server, speaker, status, found, sentence):
    server.says = [(status, found)]
    with pytest.raises(RequestError, match=sentence) as caught:
        speaker.answer(ASK, RenderOptions(), Sampling())
    assert not isinstance(caught.value, ContextFull)


def test_a_limit_below_the_models_is_counted_by_the_server(server, speaker):
    server.says = [(200, {"count": 7}), (200, ANSWER)]
    speaker.answer(ASK, RenderOptions(tools=[TOOL]), Sampling(context_tokens=8))
    (path, body, _), _ = server.seen
    assert path == "/tokenize"
    assert set(body) == {"model", "messages", "tools", "reasoning_effort"}
    server.says = [(200, {"count": 8})]
    with pytest.raises(ContextFull, match="got 8 tokens in a context of 8"):
        speaker.answer(ASK, RenderOptions(), Sampling(context_tokens=8))
    server.says = [(200, {})]
    with pytest.raises(RequestError, match="leave context_tokens at 0"):
        speaker.answer(ASK, RenderOptions(), Sampling(context_tokens=8))


def test_a_server_that_is_not_there(server):
    slept = []
    with pytest.raises(RequestError, match="5 times; is the server running"):
        ServerSpeaker("http://127.0.0.1:9", sleep=slept.append)
    assert slept == [1.0, 2.0, 4.0, 8.0]
