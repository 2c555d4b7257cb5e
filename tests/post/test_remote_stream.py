"""What a server is asked and may answer, and servers that cannot be sampled from."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from k3.errors import RequestError
from k3.post import remote
from k3.post.engine import SamplerOptions
from k3.post.remote import ServerSampler

pytest.importorskip("httpx", reason="the serve extra is not installed")


@pytest.fixture
def opened(monkeypatch):
    """Makes samplers that wait for nobody, and closes them."""
    monkeypatch.setattr(remote, "FIRST_WAIT_SECONDS", 0.001)
    made = []

    def make(url, options=None, **more):
        made.append(ServerSampler(url, options, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


def write_rest(sampler):
    got, done = [], False
    while not done:
        for piece in sampler.step():
            got += piece.tokens
            done = piece.done
    return got


class Handler(BaseHTTPRequestHandler):
    """Lists a model, and answers completions as the server was told."""

    def do_GET(self):
        self.answer(200, json.dumps({"data": [{"id": "toy"}]}))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append((body, self.headers.get("authorization")))
        says = self.server.says
        self.answer(*(says.pop(0) if len(says) > 1 else says[0]))

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def scripted():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.says, server.seen = [], []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.url = f"http://127.0.0.1:{server.server_port}/v1/"
    yield server
    server.shutdown()
    server.server_close()


def chunk(ids, logprobs, finish=None, text="x"):
    choice = {"text": text, "finish_reason": finish}
    choice |= {"token_ids": ids, "logprobs": {"token_logprobs": logprobs}}
    return f"data: {json.dumps({'choices': [choice]})}\n\n"


def test_what_is_asked_and_that_the_rest_is_asked_behind_what_came(scripted, opened):
    scripted.says += [
        (503, "busy"),
        (200, chunk([4, 5], [-1.0, -2.0])),
        (200, ": ping\n\ndata: {bad"),
        (200, chunk([], [], text="") + chunk([6], [-3.0], "stop") + "data: [DONE]\n\n"),
    ]
    options = SamplerOptions(stop_ids=(6,), seed=3)
    sampler = opened(scripted.url, options, key="secret")
    sampler.submit("a", [1, 2], 9)
    got = write_rest(sampler)
    assert got == [4, 5, 6]
    asked = [body for body, _ in scripted.seen]
    assert [body["prompt"] for body in asked] == [[1, 2], [1, 2], *[[1, 2, 4, 5]] * 2]
    assert [body["max_tokens"] for body in asked] == [9, 9, 7, 7]
    wanted = {"model": "toy", "logprobs": 1, "return_token_ids": True, "stream": True}
    assert asked[0].items() >= (wanted | {"stop_token_ids": [6]}).items()
    assert {key for _, key in scripted.seen} == {"Bearer secret"}


@pytest.mark.parametrize(
    ("status", "text", "sentence"),
    [
        (200, chunk(None, [-1.0]), "got 0 token_ids and 1 token_logprobs for 'x'; use"),
        (200, chunk([1], None), "got 1 token_ids and 0 token_logprobs"),
        (404, "no such model", "refuses a completion: 404 no such model"),
        (500, "oh", "failed 5 times"),
        (200, "data: [DONE]\n\n", "failed 5 times"),
    ],
)
def test_servers_that_cannot_be_sampled_from(scripted, opened, status, text, sentence):
    scripted.says.append((status, text))
    sampler = opened(scripted.url)
    sampler.submit("a", [1, 2], 9)
    with pytest.raises(RequestError, match=sentence):
        write_rest(sampler)


def test_no_room_in_the_context_is_the_end_of_a_turn(scripted, opened):
    scripted.says.append((400, "This model's maximum context length is 8 tokens"))
    sampler = opened(scripted.url)
    sampler.submit("a", [1] * 9, 5)
    assert write_rest(sampler) == []


def test_no_server_is_one_sentence():
    with pytest.raises(RequestError, match="v1/models must list a model: got"):
        ServerSampler("http://127.0.0.1:9")
