"""lm-eval's requests, as it sends them, on the shipped model: its documented figures.

`benchmarks/lm_eval/run.sh` runs lm-eval itself; here its arithmetic is repeated, so
that every run of the tests holds what docs/serving.md says.
"""

import json
import math
import re
from pathlib import Path

import pytest
import torch

import k3
from k3.checkpoint import locate
from k3.serve import Engine, EngineOptions, Worker
from k3.serve.openai import ServerOptions, app

ROOT = Path(__file__).parents[3]
TASKS = ROOT / "benchmarks" / "lm_eval"


@pytest.fixture(scope="module")
def served():
    tokenizer = k3.tokenizer(locate.locate("tiny"))
    # float32, as k3 serve loads it on a CPU.
    model = k3.load("tiny", dtype=torch.float32)
    engine = Engine(model, EngineOptions(), tokenizer=tokenizer)
    worker = Worker(engine)
    yield worker, tokenizer, ServerOptions(config=engine.model.config, names=("tiny",))
    worker.close()


@pytest.fixture
def client(served, make_client):
    return make_client(app(*served))


def rows(name):
    return [json.loads(line) for line in (TASKS / name).read_text().splitlines()]


def documented(task):
    (row,) = re.findall(
        rf"^\| {task} \|.*", (ROOT / "docs/serving.md").read_text(), re.M
    )
    return float(re.search(r"\d+\.\d+", row)[0])


def loglikelihood(client, ids, context):
    """Of the ids behind so many, as lm-eval's local-completions asks for it."""
    found = client.complete(
        ids, temperature=0, max_tokens=1, logprobs=1, seed=1234, echo=True
    )
    return sum(found["choices"][0]["logprobs"]["token_logprobs"][context:-1])


def ids_of(client, text):
    return client.post("/tokenize", {"prompt": text}).json()["tokens"]


def test_bits_per_byte(client):
    prefix = client.get("/tokenizer_info").json()["bos_token_id"]
    texts = [row["text"] for row in rows("texts.jsonl")]
    nats = [loglikelihood(client, [prefix, *ids_of(client, text)], 1) for text in texts]
    found = -sum(nats) / math.log(2) / sum(len(text.encode()) for text in texts)
    assert found == pytest.approx(documented("k3_bytes"), abs=1e-4)


@pytest.mark.slow
def test_accuracy_on_pairs(client):
    right = 0
    for row in rows("pairs.jsonl"):
        context = len(ids_of(client, row["text"]))
        whole = [ids_of(client, row["text"] + each) for each in row["endings"]]
        likely = [loglikelihood(client, ids, context) for ids in whole]
        right += likely.index(max(likely)) == row["right"]
    assert right / len(rows("pairs.jsonl")) == pytest.approx(
        documented("k3_pairs"), abs=0.005
    )
