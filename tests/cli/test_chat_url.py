"""k3 chat URL: a conversation with a server, here one that says what it is told."""

import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

ANSWER = [
    {"role": "assistant", "content": ""},
    {"reasoning_content": "Hm."},
    {"content": "Hel"},
    {"content": "lo"},
    {"tool_calls": [{"index": 0, "id": "c_0", "function": {"name": "f"}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
]
USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 4,
    "prompt_tokens_details": {"cached_tokens": 8},
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(200, b'{"data": [{"id": "toy"}]}')

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append((body, self.headers.get("authorization")))
        if body["messages"][-1]["content"] == "refuse":
            return self.reply(400, b'{"error": {"message": "temperature is hot"}}')
        found = [{"choices": [{"index": 0, "delta": delta}]} for delta in ANSWER]
        found[-1]["choices"][0]["finish_reason"] = "stop"
        found.append({"choices": [], "usage": USAGE})
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in found]
        self.reply(200, "".join([": ping\n\n", *lines, "data: [DONE]\n\n"]).encode())

    def reply(self, status, data):
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.seen = []
    made.url = f"http://127.0.0.1:{made.server_port}"
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_whole_message_goes_back_and_only_typed_options(k3, server, monkeypatch):
    monkeypatch.setenv("K3_API_KEY", "secret")
    monkeypatch.setattr("sys.stdin", io.StringIO("one\n\ntwo\n"))
    found = k3("chat", server.url, "--temperature", 0.5, "--stop-id", 7, "--json")
    assert found.code == 0, found.err
    first, _ = map(json.loads, found.out.splitlines())
    assert first["content"] == "Hello"
    assert first["reasoning_content"] == "Hm."
    assert first["usage"] == USAGE
    (one, key), (two, _) = server.seen
    assert key == "Bearer secret"
    assert one["temperature"] == 0.5
    assert one["stop_token_ids"] == [7]
    assert "top_p" not in one
    assert "max_tokens" not in one
    said = [message["role"] for message in two["messages"]]
    assert said == ["user", "assistant", "user"]
    assert two["messages"][1]["reasoning_content"] == "Hm."
    assert two["messages"][1]["tool_calls"][0]["function"]["name"] == "f"


def test_a_pipe_gets_the_answer_and_the_calls_without_thinking(k3, server, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("one\n/reset\ntwo\n/quit\nx\n"))
    found = k3("chat", f"{server.url}/v1/")
    assert found.out == "Hello" + "f({})\n\n" + "Hello" + "f({})\n\n"
    assert [len(body["messages"]) for body, _ in server.seen] == [1, 1]


def test_a_terminal_sees_dimmed_thinking_and_the_cost(server, monkeypatch):
    from k3.cli import remote

    said, seen = Terminal(), Terminal()
    monkeypatch.setattr("sys.stdin", Terminal("refuse\nhi\n"))
    monkeypatch.setattr("sys.stdout", said)
    monkeypatch.setattr("sys.stderr", seen)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    lines = iter(["refuse", "hi"])
    remote.chat(server.url, {}, lambda: next(lines, None), as_json=False)
    assert "\x1b[2mHm.\x1b[0m\nHello" in said.getvalue()
    assert "answers 400: temperature is hot" in seen.getvalue()
    assert "8 of 9 prompt tokens cached" in seen.getvalue()
    assert "tok/s" in seen.getvalue()


def test_refusals_end_a_pipe(k3, server, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("refuse\n"))
    found = k3("chat", server.url)
    assert found.code == 2
    assert "temperature is hot" in found.err
    assert "option of a local model" in k3("chat", server.url, "--dtype", "auto").err
    found = k3("chat", "http://127.0.0.1:9")
    assert found.code == 2
    assert "is the server running?" in found.err
