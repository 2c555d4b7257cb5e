"""The loop learns, and stops when numbers stop being finite."""

import dataclasses
import os
import signal

import pytest
import torch

from k3.data import bpe
from k3.data.tokenizer import Tokenizer
from k3.errors import CheckpointError, RequestError
from k3.train import loop, pretrain, progress, snapshot, sources
from k3.train.balance import Balance


@pytest.fixture
def data(small, text):
    tokenizer = Tokenizer(bpe.train([d.text for d in text.train], 300))
    return sources.mixture(small.mixture, text, tokenizer, small.seed)


def test_loss_falls(small, data, tmp_path):
    recipe = dataclasses.replace(
        small, steps=30, batch=4, log_steps=1, learning_rate=1e-2
    )
    records = []
    at = loop.run(
        pretrain.fresh(small), data, recipe, tmp_path, facts={}, report=records.append
    )
    assert at.step == 30
    assert [record["step"] for record in records] == list(range(1, 31))
    assert records[-1]["loss"] < records[0]["loss"] - 1
    assert records[0]["tokens_per_second"] > 0


def test_stages_change_the_rows_and_the_position_counts_them(small, data, tmp_path):
    recipe = small.set({"stages": "0.5:20:3,0.5:40:1", "steps": 4, "log_steps": 1})
    records = []
    at = loop.run(
        pretrain.fresh(small), data, recipe, tmp_path, facts={}, report=records.append
    )
    assert [record["tokens"] for record in records] == [60, 120, 160, 200]
    assert (at.rows, at.tokens) == (8, 200)
    assert all(record["losses"].keys() == {"text"} for record in records)


def test_numbers_that_are_not_finite_stop_the_run(small, data, tmp_path):
    model = pretrain.fresh(small)
    with torch.no_grad():
        model.language_model.lm_head.weight[3] = torch.inf
    with pytest.raises(
        RequestError, match=r"5 in a row .*step 5 \(not finite: loss nan"
    ):
        loop.run(model, data, small, tmp_path, facts={})


def test_snapshots_are_written_on_the_way(small, data, tmp_path, monkeypatch):
    written = []
    write = snapshot.write

    def count(directory, tensors, facts, keep=1):
        written.append(facts["step"])
        write(directory, tensors, facts, keep)

    monkeypatch.setattr(snapshot, "write", count)
    recipe = dataclasses.replace(small, steps=3, checkpoint_minutes=1e-9)
    loop.run(pretrain.fresh(small), data, recipe, tmp_path, facts={"a": 1})
    assert written == [0, 1, 2, 3, 3]
    assert snapshot.read(tmp_path)[1]["a"] == 1


def whole(small, data, directory):
    directory.mkdir()
    loop.run(pretrain.fresh(small), data, small, directory, facts={})
    return snapshot.read(directory)[0]


def same(found, wanted):
    return found.keys() == wanted.keys() and all(
        torch.equal(found[name], wanted[name]) for name in wanted
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("late", [False, True])
def test_a_signal_inside_a_step_waits_for_its_end(
    small, data, tmp_path, monkeypatch, number, late
):
    def interrupt(*_):
        raise KeyboardInterrupt

    update, calls = Balance.update_, []

    def cut(*values):
        calls.append(1)
        if late:
            update(*values)
        if len(calls) == 3:
            os.kill(os.getpid(), number)
        if not late:
            update(*values)

    before = signal.signal(number, interrupt)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Balance, "update_", cut)
            with pytest.raises(KeyboardInterrupt):
                loop.run(pretrain.fresh(small), data, small, tmp_path, facts={})
        assert signal.getsignal(number) is interrupt
    finally:
        signal.signal(number, before)
    assert snapshot.read(tmp_path)[1]["step"] == 3
    loop.run(pretrain.fresh(small), data, small, tmp_path, facts={}, resume=True)
    found = snapshot.read(tmp_path)[0]
    assert same(found, whole(small, data, tmp_path / "whole"))


@pytest.mark.parametrize("minutes", [3.0, 1e-9])
def test_half_a_step_is_in_no_snapshot(small, data, tmp_path, monkeypatch, minutes):
    update, calls = Balance.update_, []

    def cut(*values):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        update(*values)

    recipe = dataclasses.replace(small, checkpoint_minutes=minutes)
    with monkeypatch.context() as patch:
        patch.setattr(Balance, "update_", cut)
        with pytest.raises(KeyboardInterrupt):
            loop.run(pretrain.fresh(small), data, recipe, tmp_path, facts={})
    assert snapshot.read(tmp_path)[1]["step"] == (0 if minutes > 1 else 2)
    loop.run(pretrain.fresh(small), data, recipe, tmp_path, facts={}, resume=True)
    found = snapshot.read(tmp_path)[0]
    assert same(found, whole(small, data, tmp_path / "whole"))


def test_a_snapshot_of_another_model_is_refused(small, data, tmp_path):
    facts = progress.facts(progress.Progress(step=2))
    snapshot.write(tmp_path, {"bias.0": torch.zeros(3)}, facts)
    with pytest.raises(CheckpointError, match=r"needs a whole snapshot: got .*weight"):
        loop.run(pretrain.fresh(small), data, small, tmp_path, facts={}, resume=True)
