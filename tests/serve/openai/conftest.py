"""A server over a scripted worker, and one over the real engine; a byte tokenizer."""

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from k3.config import K3Config
from k3.data.tokenizer import Tokenizer
from k3.model.completion import Choice, Token
from k3.serve.metrics import Metrics
from k3.serve.openai import ServerOptions, app
from k3.serve.request import Output

GOLDEN = Path(__file__).parents[2] / "golden" / "tiny_release"
BYTES = {bytes([byte]): byte for byte in range(256)}
END = 258


def small_config(**changes):
    """tiny_release's shape with 512 tokens: 256 bytes and the special places."""
    data = json.loads((GOLDEN / "config.json").read_text())
    ids = {"bos_token_id": 256, "eos_token_id": END, "pad_token_id": 511}
    data |= ids | {"media_placeholder_token_id": 277}
    data["text_config"] |= ids | {"vocab_size": 512, "max_position_embeddings": 4096}
    data["text_config"] |= changes
    return K3Config.from_dict(data)


class Scripted:
    """A worker that says what it was told to, in pieces of the given sizes."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.says = "ok"
        self.finish = "stop"
        self.sizes = None
        self.error = None
        self.cached = 0
        self.alive = True
        self.requests = []
        self.cancelled = []
        self.gate = None
        self.resets = 0

    def ids(self, request, index):
        says = self.says(request, index) if callable(self.says) else self.says
        if isinstance(says, str):
            return self.tokenizer.encode(says, allow_special=True)
        return list(says)

    async def stream(self, request):
        self.requests.append(request)
        done = False
        try:
            if self.error is not None:
                raise self.error
            for index in range(request.n):
                async for output in self.sample(request, index):
                    yield output
            done = True
        finally:
            if not done:
                self.cancelled.append(request.id)

    async def sample(self, request, index):
        ids = self.ids(request, index)[: request.options.max_tokens]
        decoder = self.tokenizer.stream()
        prompt = None
        if request.prompt_logprobs is not None:
            prompt = [None, *[Choice(-0.5, ((1, -0.1),)) for _ in request.tokens[1:]]]
        sizes = iter(self.sizes or ())
        place = 0
        while True:
            if self.gate is not None:
                await self.gate.wait()
            size = next(sizes, 1)
            part, place = ids[place : place + size], place + size
            over = place >= len(ids)
            tokens = tuple(
                Token(
                    id=i,
                    logprob=-0.25,
                    text="" if i == END else decoder.push(i),
                    alternatives=((i, -0.25), (7, -1.5))[: request.options.logprobs],
                    finish="",
                )
                for i in part
            )
            yield Output(
                request_id=request.id,
                index=index,
                tokens=tokens,
                finish=self.finish if over else "",
                cached_tokens=self.cached,
                prompt_logprobs=prompt,
                error="it broke" if over and self.finish == "error" else None,
            )
            prompt = None
            if over:
                return
            await asyncio.sleep(0)

    async def call(self, fn):
        return fn(self)

    def snapshot(self):
        known = {"running": 2, "prefix_queries": 40, "prefix_hits": 16}
        return Metrics(**dict.fromkeys(Metrics.__dataclass_fields__, 0) | known)

    def reset_prefix_cache(self):
        self.resets += 1


@pytest.fixture(scope="session")
def tokenizer():
    return Tokenizer(BYTES)


@pytest.fixture(scope="session")
def config():
    return small_config()


@pytest.fixture
def worker(tokenizer):
    return Scripted(tokenizer)


@pytest.fixture
def options(config):
    return ServerOptions(config=config, names=("toy", "alias"))


class Client:
    """Requests to an application in this process, without a socket."""

    def __init__(self, application):
        self.app = application

    def request(self, method, path, **kwargs):
        async def run():
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as client:
                return await client.request(method, path, **kwargs)

        return asyncio.run(run())

    def get(self, path, **kwargs):
        return self.request("GET", path, **kwargs)

    def post(self, path, body, **kwargs):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", path, content=data, **kwargs)

    def chat(self, content="hi", status=200, **fields):
        messages = content if isinstance(content, list) else [user(content)]
        found = self.post("/v1/chat/completions", {"messages": messages, **fields})
        assert found.status_code == status, found.text
        if fields.get("stream") and status == 200:
            return events(found.text)
        return found.json()

    def complete(self, prompt="ab", status=200, **fields):
        found = self.post("/v1/completions", {"prompt": prompt, **fields})
        assert found.status_code == status, found.text
        if fields.get("stream") and status == 200:
            return events(found.text)
        return found.json()


def user(content):
    return {"role": "user", "content": content}


def events(text):
    """The JSON of each data line; the last must be [DONE]."""
    lines = [line[6:] for line in text.split("\n\n") if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def _joined(chunks):
    """The message and reason that a client puts together from chunks, by choice."""
    found = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            message = found.setdefault(choice["index"], {"calls": {}, "reason": None})
            delta = choice["delta"]
            for key in ("content", "reasoning_content", "reasoning"):
                if delta.get(key):
                    message[key] = message.get(key, "") + delta[key]
            for call in delta.get("tool_calls", ()):
                known = message["calls"].setdefault(
                    call["index"], {"id": call.get("id"), "name": "", "arguments": ""}
                )
                known["name"] += call["function"].get("name", "")
                known["arguments"] += call["function"]["arguments"]
            message["reason"] = choice["finish_reason"] or message["reason"]
            if "problems" in choice:
                message["problems"] = choice["problems"]
    return found


@pytest.fixture
def client(worker, tokenizer, options):
    return Client(app(worker, tokenizer, options))


@pytest.fixture
def joined():
    return _joined


@pytest.fixture
def make_client():
    return Client
