"""The loop learns, and stops when numbers stop being finite."""

import dataclasses

import pytest
import torch

from k3.data import bpe
from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.train import loop, pretrain, snapshot, stream


@pytest.fixture
def tokens(text):
    tokenizer = Tokenizer(bpe.train([d.text for d in text.train], 300))
    return stream.tokens(text.train, tokenizer)


def test_loss_falls(small, tokens, tmp_path):
    recipe = dataclasses.replace(
        small, steps=30, batch=4, log_steps=1, learning_rate=1e-2
    )
    records = []
    at = loop.run(
        pretrain.fresh(small), tokens, recipe, tmp_path, facts={}, report=records.append
    )
    assert at.step == 30
    assert [record["step"] for record in records] == list(range(1, 31))
    assert records[-1]["loss"] < records[0]["loss"] - 1
    assert records[0]["tokens_per_second"] > 0


def test_numbers_that_are_not_finite_stop_the_run(small, tokens, tmp_path):
    model = pretrain.fresh(small)
    with torch.no_grad():
        model.language_model.lm_head.weight[3] = torch.inf
    with pytest.raises(RequestError, match="must be finite: got loss nan and norm"):
        loop.run(model, tokens, small, tmp_path, facts={})


def test_snapshots_are_written_on_the_way(small, tokens, tmp_path, monkeypatch):
    written = []
    write = snapshot.write

    def count(directory, tensors, facts):
        written.append(facts["step"])
        write(directory, tensors, facts)

    monkeypatch.setattr(snapshot, "write", count)
    recipe = dataclasses.replace(small, steps=3, checkpoint_minutes=1e-9)
    loop.run(pretrain.fresh(small), tokens, recipe, tmp_path, facts={"a": 1})
    assert written == [1, 2, 3, 3]
    assert snapshot.read(tmp_path)[1]["a"] == 1
