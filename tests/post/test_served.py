"""A whole run whose samples come from a server in another thread."""

import asyncio
import json
import threading

import pytest
import torch

import k3
from k3.post import recipes, run
from k3.serve.engine import Engine, EngineOptions
from k3.serve.openai import ServerOptions, app
from k3.serve.openai.server import Loading, Server, listen
from k3.serve.worker import Worker

pytest.importorskip("httpx", reason="the serve extra is not installed")
pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def url():
    """The shipped model behind a server, as `k3 serve` runs it."""
    import uvicorn

    net = k3.load("tiny", dtype=torch.float32, experts="dequantized")
    options = ServerOptions(config=net.config, names=("tiny",), max_model_len=400)
    application = app(None, k3.tokenizer("tiny"), options)
    listening = listen("127.0.0.1", 0)
    server = Server(uvicorn.Config(application, log_level="warning", lifespan="off"))
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve(sockets=[listening]))
    )
    ready, engine = threading.Event(), Engine(net, EngineOptions(max_model_len=400))
    loading = Loading(
        lambda: Worker(engine), application.state.service, lambda _: ready.set()
    )
    thread.start()
    assert ready.wait(60)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    loading.worker.close()


def test_a_run_samples_on_a_server_and_pushes_to_it(url, tmp_path):
    settings = {"tasks": "calculator", "thinking": False, "iterations": 2}
    small = {"prompts": 1, "samples": 2, "max_tokens": 10, "heldout": 0}
    recipe = recipes.named("agentic-high").set(
        settings | small | {"budget_start": 0, "workers": 1, "share": 1}
    )
    out, told = tmp_path / "out", tmp_path / "told"
    push = f"sh -c 'echo {{version}} {{folder}} >> {told}'"
    result = run.run(recipe, "tiny", out, server=(url, push), quiet=True)
    assert (result.iteration, result.sampled_tokens) == (2, 40)
    versions = [line.split()[0] for line in told.read_text().splitlines()]
    assert versions == ["1", "2"]
    records = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    # Nothing was right, so the weights of both are still the shipped ones.
    parities = [record["parity"] for record in records]
    assert all(p["max"] < 1e-3 and p["tokens"] == 20 for p in parities)
