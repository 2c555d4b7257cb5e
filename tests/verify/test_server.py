"""A model against a loopback server: right answers, near ties, wrong ones."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time

import pytest
import small
import torch
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.model.generate import GenerateOptions, stream
from k3.verify import server

BYTES = {bytes([byte]): byte for byte in range(256)}


@pytest.fixture(scope="module")
def model():
    text = {"bos_token_id": 256, "eos_token_id": 258, "pad_token_id": 511}
    return small.model(torch.float32, small.config(vocab_size=512, **text))


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(BYTES)


def completion(model, tokenizer, body):
    options = GenerateOptions(temperature=0.0, max_tokens=body["max_tokens"])
    ids = tokenizer.encode(body["prompt"])
    tokens = list(stream(model, ids, options, tokenizer=tokenizer))
    shown = [t for t in tokens if t.text]
    odds = {
        "tokens": [t.text for t in shown],
        "token_logprobs": [t.logprob for t in shown],
    }
    text = "".join(t.text for t in tokens)
    return {"choices": [{"index": 0, "text": text, "logprobs": odds}]}


@pytest.fixture(scope="module")
def served(model, tokenizer):
    """An address, and a list whose last function changes every answer."""
    changes = [lambda answer: answer]

    async def complete(request):
        answer = completion(model, tokenizer, await request.json())
        return JSONResponse(changes[-1](answer))

    async def models(request):
        return JSONResponse({"data": [{"id": "small"}]})

    routes = [
        Route("/v1/completions", complete, methods=["POST"]),
        Route("/v1/models", models),
    ]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = uvicorn.Config(Starlette(routes=routes), port=port, log_level="error")
    running = uvicorn.Server(options)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}", changes
    running.should_exit = True
    thread.join()


@contextlib.contextmanager
def changed(changes, change):
    changes.append(change)
    yield
    changes.pop()


def compared(model, tokenizer, url, **options):
    given = {"max_tokens": 5} | options
    return server.compare_server(model, tokenizer, url, ["If", "A"], **given)


def test_the_same_model_agrees(model, tokenizer, served):
    url, _ = served
    report = compared(model, tokenizer, url)
    assert report.ok, report
    assert report.model == "small"
    assert report.answers[0].tokens > 0
    assert str(report).endswith("agrees")
    assert compared(model, tokenizer, f"{url}/v1/").ok


def test_other_odds_differ(model, tokenizer, served):
    url, changes = served

    def shift(answer):
        odds = answer["choices"][0]["logprobs"]
        odds["token_logprobs"] = [p - 0.05 for p in odds["token_logprobs"]]
        return answer

    with changed(changes, shift):
        report = compared(model, tokenizer, url)
        assert not report.ok
        assert report.answers[0].gap == pytest.approx(0.05)
        assert compared(model, tokenizer, url, tolerance=0.1).ok


def test_another_token_differs_unless_it_is_a_near_tie(model, tokenizer, served):
    url, changes = served

    def other(answer):
        choice = answer["choices"][0]
        choice["text"] = choice["text"][:1] + "~"
        odds = choice["logprobs"]
        odds["tokens"] = [*odds["tokens"][:1], "~"]
        odds["token_logprobs"] = odds["token_logprobs"][:2]
        return answer

    with changed(changes, other):
        report = compared(model, tokenizer, url)
        assert not report.ok
        (first, *_) = report.answers
        assert first.at == 1
        assert first.choices[1] == "~"
        assert "not a tie" in str(report)
        near = compared(model, tokenizer, url, tolerance=100.0)
        assert near.ok
        assert "a near tie" in str(near)


def test_an_answer_without_odds_is_a_problem(model, tokenizer, served):
    url, changes = served

    def bare(answer):
        answer["choices"][0]["logprobs"] = None
        return answer

    with changed(changes, bare):
        report = compared(model, tokenizer, url)
    assert not report.ok
    assert "no completion with log-probabilities" in str(report)
    assert report.to_dict()["answers"][0]["ok"] is False


@pytest.mark.parametrize(
    "odds",
    [
        {"tokens": ["a"], "token_logprobs": []},
        {"tokens": ["a"], "token_logprobs": [None]},
        {"tokens": [], "token_logprobs": []},
        {"tokens": ["a"], "token_logprobs": ["low"]},
        "none",
    ],
)
def test_odds_that_are_not_there_are_no_agreement(model, tokenizer, served, odds):
    url, changes = served

    def broken(answer):
        answer["choices"][0]["logprobs"] = odds
        return answer

    with changed(changes, broken):
        report = compared(model, tokenizer, url)
    assert "no completion with log-probabilities" in str(report)
    assert not report.ok


def test_odds_that_are_no_number_differ(model, tokenizer, served):
    url, changes = served

    def nan(answer):
        odds = answer["choices"][0]["logprobs"]["token_logprobs"]
        odds[-1] = "nan"
        return answer

    with changed(changes, nan):
        report = compared(model, tokenizer, url)
    assert report.answers[0].gap == float("inf")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "500 Oops"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", "with JSON: got"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "must list a model"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "with JSON: got"),
        (b"SSH-2.0-OpenSSH_9\r\n", "with JSON: got"),
        (b"", "with JSON: got"),
        (None, "timed out"),
    ],
)
def test_what_is_no_such_server_is_said(model, tokenizer, monkeypatch, answer, said):
    monkeypatch.setattr(server, "SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def once():
            with listening.accept()[0] as client:
                client.recv(1 << 16)
                if answer is None:
                    time.sleep(1)
                else:
                    client.sendall(answer)

        thread = threading.Thread(target=once, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(RequestError, match=said):
            compared(model, tokenizer, url)
        thread.join()


@pytest.mark.slow
def test_our_own_server_agrees():
    """k3 compare tiny URL against k3 serve tiny."""
    command = [sys.executable, "-m", "k3", "serve", "tiny", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = json.loads(process.stdout.readline())["url"]
            asked = [sys.executable, "-m", "k3", "compare", "tiny", url, "--json"]
            done = subprocess.run(asked, capture_output=True, text=True)
        finally:
            process.terminate()
    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert found["ok"]
    assert len(found["answers"]) == 3
    assert all(a["tokens"] > 1 for a in found["answers"])


def test_nobody_there(model, tokenizer):
    with pytest.raises(RequestError, match="start it, or correct the address"):
        compared(model, tokenizer, "http://127.0.0.1:9")
