"""What a request may say: fields, limits, keys, errors in OpenAI's shape."""

import json
import random

import pytest

from k3.config import K3Config
from k3.errors import RequestError
from k3.serve.openai import ServerOptions, app


def refusal(client, param, path="/v1/chat/completions", status=400, **fields):
    body = {"messages": [{"role": "user", "content": "hi"}], **fields}
    if path == "/v1/completions":
        body = {"prompt": "ab", **fields}
    found = client.post(path, body)
    assert found.status_code == status, found.text
    error = found.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["param"] == param, error
    assert "Traceback" not in found.text
    return error


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 3),
        ("temperature", "hot"),
        ("top_p", 0),
        ("min_p", 2),
        ("top_k", -2),
        ("seed", 2**64),
        ("n", 0),
        ("n", 1e9),
        ("max_tokens", 0),
        ("max_completion_tokens", -1),
        ("stop", 3),
        ("stop", [1]),
        ("stop_token_ids", [9999]),
        ("ignore_eos", "yes"),
        ("logprobs", 3),
        ("top_logprobs", 3),
        ("stream", "true"),
        ("stream_options", {"include_usage": True}),
        ("tools", "f"),
        ("tool_choice", "must"),
        ("response_format", {"type": "xml"}),
        ("reasoning_effort", "medium"),
        ("continue_final_message", 1),
        ("cache_salt", 7),
        ("model", 0.5),
        ("frequency_penalty", 1),
        ("logit_bias", {"5": 1}),
        ("functions", [{"name": "f"}]),
        ("tempratur", 1),
    ],
)
def test_a_refusal_names_its_field(client, field, value):
    status = 404 if field == "model" else 400
    error = refusal(client, param=_param(field), status=status, **{field: value})
    assert field in error["message"]


def _param(field):
    return f"{field}.type" if field == "response_format" else field


def test_unknown_fields_are_refused_and_bookkeeping_is_ignored(client, worker):
    error = refusal(client, "tempratur", tempratur=1)
    assert "did you mean temperature?" in error["message"]
    client.chat(user="me", metadata={"a": "b"}, store=False, frequency_penalty=0)
    client.chat(logit_bias={}, logprobs=None, tools=None, suffix=None)
    assert len(worker.requests) == 2


def test_messages_are_refused_by_place(client):
    error = client.chat([{"role": "robot", "content": "x"}], status=400)["error"]
    assert error["param"] == "messages[0].role"
    assert client.chat([], status=400)["error"]["param"] == "messages"
    assert client.chat([3], status=400)["error"]["param"] == "messages[0]"


def test_defaults_and_names_reach_the_engine(client, worker):
    client.chat()
    options = worker.requests[-1].options
    assert (options.temperature, options.top_p, options.top_k) == (1.0, 0.95, 0)
    client.chat(max_completion_tokens=5, max_tokens=9, top_k=-1, seed=-1)
    options = worker.requests[-1].options
    assert (options.max_tokens, options.top_k, options.seed) == (5, 0, 2**63 - 1)
    assert client.chat(model="alias")["model"] == "alias"
    error = refusal(client, "model", status=404, model="gpt")
    assert error["code"] == "model_not_found"
    assert "toy, alias" in error["message"]


def test_report_97_the_limit_of_the_context(client, worker):
    limit = 4096
    exactly = [65] * (limit - 1)
    client.complete(exactly, max_tokens=1)
    assert worker.requests[-1].options.max_tokens == 1
    for tokens in (0, 1, None):
        error = refusal(
            client, "prompt", "/v1/completions", prompt=[65] * limit, max_tokens=tokens
        )
        assert error["code"] == "context_length_exceeded"
        assert error["message"].count("4096") == 2
    client.complete([65] * (limit - 3), max_tokens=10)
    assert worker.requests[-1].options.max_tokens == 3
    client.complete("ab")
    assert worker.requests[-1].options.max_tokens == 16
    client.complete("ab", max_tokens=2**62)
    assert worker.requests[-1].options.max_tokens == limit - 2
    client.chat()
    room = limit - len(worker.requests[-1].tokens)
    assert worker.requests[-1].options.max_tokens == room
    found = client.chat("x" * limit, stream=True, status=400)
    assert found["error"]["param"] == "messages"


def test_a_full_queue_says_when_to_come_again(client, worker):
    worker.error = RequestError("the queue is full: 3 of 3 wait; try again")
    for stream in (False, True):
        body = {"messages": [{"role": "user", "content": "x"}], "stream": stream}
        found = client.post("/v1/chat/completions", body)
        assert found.status_code == 429
        assert found.headers["retry-after"] == "1"
        assert found.json()["error"]["type"] == "rate_limit_error"
    worker.error = RequestError("the engine is shutting down and takes no new ones")
    assert client.chat(status=503)["error"]["code"] == "unavailable"


def test_our_own_faults_are_500_without_a_trace(client, worker, caplog):
    worker.error = ValueError("secret words")
    assert client.chat(status=500)["error"]["code"] == "internal_error"
    found = client.chat(stream=True, status=500)
    assert "secret" not in json.dumps(found)
    assert "secret words" in caplog.text


def test_the_server_answers_while_the_model_loads(tokenizer, options, make_client):
    client = make_client(app(None, tokenizer, options))
    for path in ("/health", "/ping"):
        assert client.get(path).status_code == 503
    found = client.chat(status=503)
    assert found["error"]["code"] == "loading"
    assert client.get("/v1/models").status_code == 200
    assert client.get("/metrics").status_code == 200
    assert client.post("/tokenize", {"prompt": "ab"}).json()["tokens"] == [97, 98]


def test_a_worker_that_has_stopped_is_unhealthy(client, worker):
    worker.alive = False
    assert client.get("/health").status_code == 503
    assert client.chat(status=503)["error"]["code"] == "unavailable"


def test_keys_open_the_server_and_keep_caches_apart(
    worker, tokenizer, config, make_client
):
    options = ServerOptions(config=config, names=("toy",), api_keys=("one", "two"))
    client = make_client(app(worker, tokenizer, options))
    for headers in ({}, {"authorization": "Bearer three"}, {"authorization": "one"}):
        found = client.get("/v1/models", headers=headers)
        assert found.status_code == 401
        assert found.json()["error"]["code"] == "invalid_api_key"
    assert client.get("/health").status_code == 200
    body = {"prompt": "ab"}
    for key in ("one", "two", "one"):
        headers = {"authorization": f"Bearer {key}"}
        assert client.post("/v1/completions", body, headers=headers).status_code == 200
    salts = [request.salt for request in worker.requests]
    assert salts[0] == salts[2] != salts[1]
    assert b"" not in salts
    client.post("/v1/completions", {**body, "cache_salt": "s"}, headers=headers)
    assert worker.requests[-1].salt not in salts


def test_bodies_are_limited_and_must_be_json(worker, tokenizer, config, make_client):
    options = ServerOptions(config=config, names=("toy",), max_body_bytes=200)
    client = make_client(app(worker, tokenizer, options))
    error = client.complete("x" * 300, status=413)["error"]
    assert error["code"] == "request_too_large"
    for body in (b"", b"{", b"[]", b'{"a": NaN}', b"\xff", b"[" * 150, b"1" * 190):
        found = client.post("/v1/completions", body)
        assert found.status_code == 400, body
        assert found.json()["error"]["message"].startswith("the body must be")
    assert client.post("/tokenize", b"3").status_code == 400


def test_paths_and_methods_that_are_not_there(client):
    found = client.get("/v1/nothing")
    assert found.status_code == 404
    assert found.json()["error"]["code"] == "not_found"
    found = client.get("/v1/chat/completions")
    assert found.status_code == 405
    assert found.json()["error"]["type"] == "invalid_request_error"


def test_pages_of_this_machine_may_call(client):
    for origin, allowed in (("http://localhost:3000", True), ("http://a.test", False)):
        found = client.get("/v1/models", headers={"origin": origin})
        assert ("access-control-allow-origin" in found.headers) == allowed


def test_options_of_a_server_that_nobody_could_call(config):
    for wrong, words in (
        ({"names": ()}, "needs a name"),
        ({"api_keys": ("",)}, "must not be empty"),
        ({"max_model_len": 10**9}, "at most max_position_embeddings 4096"),
    ):
        with pytest.raises(RequestError, match=words):
            ServerOptions(config=config, **wrong)


WORDS = [
    *(None, True, 0, -1, 1.5, 1e308, 2**70, "", "a", "\ud800", "auto", [], [[]], {}),
    *({"type": "text"}, {"type": "json_schema", "json_schema": {"schema": {"a": 1}}}),
    *({"role": "user", "content": "x"}, {"role": "tool"}, [{"role": "user"}]),
    *({"type": "function", "function": {"name": "f", "parameters": {"type": 3}}},),
    *({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},),
]


def fuzzed(rng, depth=2):
    pick = rng.random()
    if depth and pick < 0.25:
        return [fuzzed(rng, depth - 1) for _ in range(rng.randrange(3))]
    if depth and pick < 0.4:
        keys = ["role", "content", "type", "function", "name", "url", "text", "tools"]
        return {rng.choice(keys): fuzzed(rng, depth - 1) for _ in range(3)}
    return rng.choice(WORDS)


def fuzz(client, worker, count, seed):
    from k3.serve.openai import chat, completions

    rng = random.Random(seed)
    worker.says = "ab\ufffd"
    for _ in range(count):
        path = rng.choice(["/v1/chat/completions", "/v1/completions", "/tokenize"])
        body = {"messages": [{"role": "user", "content": "x"}]}
        fields = [*chat.FIELDS, "user"]
        if path == "/v1/completions":
            body, fields = {"prompt": "ab"}, list(completions.FIELDS)
        for name in rng.sample(fields, rng.randrange(1, 4)):
            body[name] = fuzzed(rng)
        data = json.dumps(body).encode()
        if rng.random() < 0.1:
            data = bytearray(data)
            data[rng.randrange(len(data))] = rng.randrange(256)
        found = client.post(path, bytes(data))
        assert found.status_code < 500, (path, bytes(data), found.text)


def test_300_fuzzed_bodies_give_no_server_error(client, worker):
    fuzz(client, worker, 300, seed=1)


@pytest.mark.slow
def test_10000_fuzzed_bodies_give_no_server_error(client, worker):
    fuzz(client, worker, 10_000, seed=2)


def test_a_reader_answers_what_is_no_endpoint(worker, tokenizer, options, make_client):
    from starlette.responses import PlainTextResponse

    client = make_client(
        app(worker, tokenizer, options, reader=PlainTextResponse("page"))
    )
    assert client.get("/").text == "page"
    assert client.get("/any/chapter").text == "page"
    assert client.get("/v1/models").json()["object"] == "list"


def test_report_79_a_model_without_an_end_is_refused(config):
    data = config.to_dict() | {"eos_token_id": None}
    with pytest.raises(RequestError, match=r"its config.json has no eos_token_id; add"):
        ServerOptions(config=K3Config.from_dict(data))
