"""Rollouts over our own server, on a socket of this machine, and over failing ones."""

import asyncio
import contextlib
import socket
import threading

import pytest
from small import config, model, schedule

from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.post import remote
from k3.post.engine import EngineSampler, SamplerOptions
from k3.post.remote import ServerSampler
from k3.serve import CacheOptions
from k3.serve.engine import Engine, EngineOptions
from k3.serve.openai import ServerOptions, app
from k3.serve.openai.server import Loading, Server, listen
from k3.serve.worker import Worker
from k3.train.rollout import Sampler

pytest.importorskip("httpx", reason="the serve extra is not installed")
pytestmark = pytest.mark.usefixtures("unchecked")
GREEDY = SamplerOptions(temperature=0.0, ignore_eos=True)
BYTES = {bytes([byte]): byte for byte in range(256)}
PROMPTS = {"a": [5, 6, 7], "b": [30, 31], "c": list(range(1, 40))}


@pytest.fixture(scope="module")
def net():
    made = config(num_hidden_layers=4, linear=schedule(4), vocab_size=512)
    return model(made=made)


def engine(net):
    cache = CacheOptions(hash_tokens=16, block_tokens=32, chunk_tokens=64)
    return Engine(net, EngineOptions(cache=cache, max_model_len=200))


@pytest.fixture(scope="module")
def url(net):
    """A server in a thread, as `k3 serve` runs it."""
    import uvicorn

    tokenizer = Tokenizer(BYTES)
    options = ServerOptions(config=net.config, names=("toy",), max_model_len=200)
    application = app(None, tokenizer, options)
    listening = listen("127.0.0.1", 0)
    server = Server(uvicorn.Config(application, log_level="warning", lifespan="off"))
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve(sockets=[listening]))
    )
    ready = threading.Event()
    loading = Loading(
        lambda: Worker(engine(net)), application.state.service, lambda _: ready.set()
    )
    thread.start()
    assert ready.wait(60)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    loading.worker.close()


@pytest.fixture
def opened():
    """Makes samplers, and closes them."""
    made = []

    def make(url, options=GREEDY, **more):
        made.append(ServerSampler(url, options, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(remote, "FIRST_WAIT_SECONDS", 0.001)


def write(sampler, wanted, count=30, pauses=()):
    """Tokens and log-probabilities by key; all are paused at some steps."""
    text = {key: list(tokens) for key, tokens in wanted.items()}
    logprobs, left, step = {key: [] for key in wanted}, set(wanted), 0
    for key in wanted:
        sampler.submit(key, text[key], count)
    while left:
        if step in pauses:
            for key in left:
                sampler.pause(key)
            for key in sorted(left):
                sampler.submit(key, text[key], count - len(logprobs[key]))
        for piece in sampler.step():
            text[piece.key] += piece.tokens
            logprobs[piece.key] += piece.logprobs
            if piece.done:
                left.remove(piece.key)
        step += 1
    return text, logprobs


@pytest.fixture(scope="module")
def want(net):
    return write(EngineSampler(engine(net), GREEDY), PROMPTS)


def agrees(got, want):
    assert got[0] == want[0]
    for key, values in want[1].items():
        assert got[1][key] == pytest.approx(values, abs=1e-4)


def test_it_writes_what_the_engine_writes(url, opened, want):
    sampler = opened(url)
    assert isinstance(sampler, Sampler)
    assert (sampler.model, sampler.context_tokens) == ("toy", 200)
    agrees(write(sampler, PROMPTS), want)
    assert sampler.step() == []


@pytest.mark.parametrize("pauses", [(0,), (1, 2, 3), range(0, 16, 3)])
def test_a_pause_loses_and_doubles_nothing(url, opened, want, pauses):
    agrees(write(opened(url), PROMPTS, pauses=pauses), want)


def test_what_came_unheard_is_heard_after_a_pause(url, opened, want):
    sampler = opened(url)
    sampler.submit("a", PROMPTS["a"], 30)
    turn = sampler._turns["a"]
    turn.reading.result(20)
    sampler.pause("a")
    assert sampler.room() == 64
    sampler.submit("a", PROMPTS["a"], 30)
    (piece,) = sampler.step()
    assert (piece.done, len(piece.tokens)) == (True, 30)
    assert [*PROMPTS["a"], *piece.tokens] == want[0]["a"]


def test_new_weights_are_pushed_and_what_came_of_old_ones_is_dropped(url, opened):
    pushed = []
    sampler = opened(url, push=pushed.append)
    sampler.submit("a", PROMPTS["a"], 3)
    sampler._turns["a"].reading.result(20)
    sampler.pause("a")
    sampler.update()
    sampler.update(5)
    assert (pushed, sampler.version, sampler._paused) == ([1, 5], 5, {})
    with pytest.raises(RequestError, match="only grows: got 5 after 5"):
        sampler.update(5)
    with pytest.raises(RequestError, match="keeps its weights unless they are pushed"):
        opened(url).update()


def test_the_context_ends_a_turn(url, opened):
    sampler = opened(url)
    sampler.submit("a", [7] * 195, 30)
    got = write_rest(sampler)
    assert len(got) == 5
    sampler.submit("b", [7] * 200, 30)
    assert write_rest(sampler) == []


def write_rest(sampler):
    got, done = [], False
    while not done:
        for piece in sampler.step():
            got += piece.tokens
            done = piece.done
    return got


def test_pictures_and_second_submissions_are_refused(url, opened):
    sampler = opened(url)
    with pytest.raises(RequestError, match="token ids alone: got a picture"):
        sampler.submit("a", [1], 3, ["picture"])
    sampler.submit("a", [1], 3)
    with pytest.raises(RequestError, match="once at a time: got a"):
        sampler.submit("a", [1], 3)


def received(source):
    try:
        return source.recv(256)
    except OSError:
        return b""


class Cutting:
    """A way to a server that is cut after so many bytes of answers, again and again."""

    def __init__(self, url, cuts):
        host, port = url.removeprefix("http://").split(":")
        self.upstream, self.cuts = (host, int(port)), list(cuts)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.sockets, self.threads = [], []
        self.start(self.accept)

    def start(self, work, *given):
        thread = threading.Thread(target=work, args=given, daemon=True)
        self.threads.append(thread)
        thread.start()

    def close(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        for each in self.sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        for each in (self.listening, *self.sockets):
            each.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            server = socket.create_connection(self.upstream)
            left = self.cuts.pop(0) if self.cuts else None
            self.sockets += [client, server]
            self.start(self.pump, client, server, None)
            self.start(self.pump, server, client, left)

    def pump(self, source, target, left):
        try:
            while data := received(source):
                with contextlib.suppress(OSError):
                    target.sendall(data if left is None else data[:left])
                if left is not None and (left := left - len(data)) <= 0:
                    break
        finally:
            for each in (source, target):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)


def test_a_server_that_dies_in_the_middle_costs_no_token(url, opened, want):
    """The way to it breaks nine times, within heads, lines and numbers."""
    way = Cutting(url, [None, *range(150, 6000, 650)])
    try:
        agrees(write(opened(way.url), PROMPTS), want)
        assert way.cuts == []
    finally:
        way.close()


def test_nothing_is_asked_for_behind_a_token_that_ends_a_turn(
    url, opened, want, monkeypatch
):
    """The way breaks between the last token and the word that it was the last."""
    read = remote.stream.read
    monkeypatch.setattr(
        remote.stream, "read", lambda choice: read(choice)._replace(done=False)
    )
    last = want[0]["a"][len(PROMPTS["a"]) + 4]
    options = SamplerOptions(temperature=0.0, ignore_eos=True, stop_ids=(last,))
    got = write(opened(url, options), {"a": PROMPTS["a"]})
    written = got[0]["a"][len(PROMPTS["a"]) :]
    assert written.index(last) == len(written) - 1 == len(got[1]["a"]) - 1
