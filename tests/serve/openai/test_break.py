"""What breaks a server: an engine that fails, clients that stop reading, tenants."""

import asyncio
import base64
import io
import json
import threading

import httpx
import pytest
from PIL import Image

from k3.errors import RequestError
from k3.model import Model
from k3.serve import CacheOptions
from k3.serve.engine import Engine, EngineOptions
from k3.serve.openai import ServerOptions, app, server, sse
from k3.serve.worker import Worker

LONG = {"prompt": "ab", "max_tokens": 3000, "ignore_eos": True, "stream": True}


@pytest.fixture
def running(config, tokenizer):
    """(url, engine, thread's error) of `server.serve` as `k3 serve` runs it."""
    made = Model(config).init_weights(seed=1)
    cache = CacheOptions(hash_tokens=16, block_tokens=32, chunk_tokens=64)
    engine = Engine(made, EngineOptions(cache=cache), tokenizer=tokenizer)
    options = ServerOptions(config=config, names=("toy",), api_keys=("one", "two"))
    listening, ready = server.listen("127.0.0.1", 0), threading.Event()
    ended: list[BaseException | None] = []

    def serve():
        try:
            server.serve(
                app(None, tokenizer, options),
                lambda: Worker(engine),
                listening,
                drain_seconds=60,
                loaded=ready.set,
            )
            ended.append(None)
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    assert ready.wait(60)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    yield url, engine, ended
    if not ended:
        engine.step = None
        with httpx.Client(base_url=url, headers=key("one")) as client:
            client.post("/v1/completions", json={"prompt": "x"})
    thread.join(60)
    assert not thread.is_alive()


def key(name):
    return {"authorization": f"Bearer {name}"}


def test_a_server_ends_when_its_engine_has_failed(running, caplog):
    """The stream is told, nothing hangs, and the process ends with the reason."""
    url, engine, ended = running
    with (
        httpx.Client(base_url=url, headers=key("one"), timeout=60) as client,
        client.stream("POST", "/v1/completions", json=LONG) as answer,
    ):
        lines = answer.iter_lines()
        assert next(lines).startswith("data: {")
        engine.step = None
        *_, error, _, done, _ = lines
    assert json.loads(error[6:])["error"]["message"] == (
        "the engine could not finish this request: the engine has stopped: a step "
        "failed with TypeError; start it again"
    )
    assert done == "data: [DONE]"
    for _ in range(600):
        if ended:
            break
        threading.Event().wait(0.1)
    assert isinstance(ended[0], RequestError)
    assert "a step failed with TypeError" in str(ended[0])
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")


def test_tenants_share_no_prefix_and_one_forgets_for_all(running):
    url, _, _ = running
    body = {"prompt": "a prompt of more than one block of sixteen bytes"}

    def cached(name, **more):
        with httpx.Client(base_url=url, headers=key(name), timeout=60) as client:
            told = client.post("/v1/completions", json=body | more).json()
        return told["usage"]["prompt_tokens_details"]["cached_tokens"]

    assert [cached(name) for name in ("one", "two", "one", "two")] == [0, 0, 32, 32]
    assert [cached("one", cache_salt=salt) for salt in "aba"] == [0, 0, 32]
    assert httpx.post(f"{url}/reset_prefix_cache").status_code == 401
    done = httpx.post(f"{url}/reset_prefix_cache", headers=key("two"))
    assert done.json() == {"success": True}
    assert cached("one") == 0


def test_a_client_that_reads_no_more_is_let_go(client, worker, monkeypatch, caplog):
    """Its request is cancelled, what feeds its stream is closed."""
    monkeypatch.setattr(sse, "STALL_SECONDS", 0.05)
    sent, data = [], json.dumps({"prompt": "ab", "stream": True}).encode()
    parts = [{"type": "http.request", "body": data, "more_body": False}]

    async def receive():
        return parts.pop() if parts else await asyncio.Event().wait()

    async def send(message):
        sent.append(message["type"])
        if len(sent) > 1:
            await asyncio.Event().wait()

    async def main():
        path = "/v1/completions"
        scope = {"type": "http", "method": "POST", "path": path, "headers": []}
        scope |= {"query_string": b"", "asgi": {"spec_version": "2.3"}}
        await asyncio.wait_for(client.app(scope, receive, send), 20)

    asyncio.run(main())
    assert sent == ["http.response.start", "http.response.body"]
    assert "a client reads no more: its stream is closed" in caplog.text


def test_a_body_that_is_cut_off_is_nobodys_fault(client, worker, caplog):
    parts = [{"type": "http.request", "body": b"{", "more_body": True}]
    parts += [{"type": "http.disconnect"}] * 3
    sent = []

    async def receive():
        return parts.pop(0)

    async def send(message):
        sent.append(message)

    path = "/v1/completions"
    scope = {"type": "http", "method": "POST", "path": path, "headers": []}
    asyncio.run(client.app(scope | {"query_string": b""}, receive, send))
    assert sent[0]["status"] == 499
    assert not caplog.text
    assert not worker.requests


def test_a_late_send_is_a_stall():
    async def never(message):
        await asyncio.Event().wait()

    async def main():
        with pytest.raises(sse.Stalled):
            await sse.within(never, 0.01)({"type": "x"})

    asyncio.run(main())


def picture(size, mode="RGB", kind="PNG", cut=None, **more):
    data = io.BytesIO()
    Image.new(mode, size).save(data, kind, **more)
    return data.getvalue()[:cut]


ODD = {
    "one pixel": (picture((1, 1)), 200),
    "a line": (picture((1, 3000)), 200),
    "a palette": (picture((30, 20), "P"), 200),
    "16 bits": (picture((30, 20), "I;16"), 200),
    "transparent": (picture((30, 20), "LA"), 200),
    "CMYK": (picture((30, 20), "CMYK", "JPEG"), 200),
    "animated": (
        picture(
            (9, 9), kind="GIF", save_all=True, append_images=[Image.new("L", (9, 9))]
        ),
        200,
    ),
    "a bomb": (picture((30000, 30000), "1"), 400),
    "cut off": (picture((300, 300), cut=150), 400),
    "nothing": (b"", 400),
    "no picture": (b"%PDF-1.7 and so on", 400),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_pictures_are_read_or_refused_by_place(client, name):
    data, status = ODD[name]
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    part = {"type": "image_url", "image_url": {"url": url}}
    told = client.chat([{"role": "user", "content": [part]}], status=status)
    if status == 400:
        assert told["error"]["param"] == "messages[0].content[0].image_url"


RAW = {
    b'{"messages": [{"role": "user", "content": "x"}], "temperature": NaN}': 400,
    b'{"messages": [{"role": "user", "content": "x"}], "temperature": 1e999}': 400,
    b'{"messages": [{"role": "user", "content": "x"}], "top_p": -1e999}': 400,
    b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": 1e999}': 400,
    b'{"messages": [{"role": "user", "content": "x"}], "n": ' + b"9" * 5000 + b"}": 400,
    b'{"messages": [{"role": "user", "content": "x"}], "messages": []}': 400,
    b'{"messages": [{"role": "user", "content": "x"}], "n": 9, "n": 1}': 200,
    b'{"messages": [{"role": "user", "content": "\\ud800"}]}': 200,
    b'{"messages": [{"role": "user", "content": "\xff"}]}': 400,
    b'{"messages":' + b"[" * 50_000 + b"]" * 50_000 + b"}": 400,
    b"[" * 100_000: 400,
    b"": 400,
    b"null": 400,
    b"{} {}": 400,
}


@pytest.mark.parametrize(("body", "status"), RAW.items(), ids=range(len(RAW)))
def test_bodies_that_are_hardly_json(client, body, status):
    """The last of two equal keys counts; numbers are finite; nesting has an end."""
    assert client.post("/v1/chat/completions", body).status_code == status
