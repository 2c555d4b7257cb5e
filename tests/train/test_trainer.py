"""A step moves all or nothing, and says which."""

import dataclasses
import math

import pytest
import torch
import toy

from k3.data import packing
from k3.data.examples import Example
from k3.kernels import mla
from k3.model.mla import MLA
from k3.train import batch, pretrain, workers
from k3.train.feed import Feed
from k3.train.progress import Progress
from k3.train.spikes import Recent
from k3.train.trainer import NOTHING, Trainer


class Rows:
    """Rows of random words; every third step has nothing to learn where wanted."""

    domains = ("words",)

    def __init__(self, tokens, idle=False):
        self.tokens, self.idle = tokens, idle

    def row(self, number):
        generator = torch.manual_seed(number)
        ids = torch.randint(0, 300, (self.tokens,), generator=generator)
        learned = torch.arange(self.tokens) > 0
        if self.idle and number // 2 % 3 == 1:
            learned[:] = False
        example = Example(ids=ids, learned=learned, domain="words")
        return packing.pack([example], self.tokens, 555, self.domains)


@pytest.fixture
def trained():
    """Make a trainer over such rows; `change` its recipe."""

    def make(idle=False, **change):
        recipe = dataclasses.replace(toy.recipe(), tokens=12, steps=9, **change)
        feed = Feed(lambda tokens: Rows(tokens, idle))
        with workers.pool(1) as pool:
            return Trainer.of(pretrain.fresh(recipe), recipe, feed, pool)

    return make


def steps(trainer, at, count):
    with workers.pool(1) as pool:
        live = dataclasses.replace(trainer, pool=pool)
        return [live.step(at) for _ in range(count)]


def state(trainer):
    held = trainer.masters.state() | trainer.balance.state()
    return {name: value.clone() for name, value in held.items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_a_step_that_is_not_finite_moves_nothing(trained, monkeypatch, optimizer):
    trainer, at = trained(optimizer=optimizer, balance="quantile"), Progress()
    steps(trainer, at, 1)
    before, run = state(trainer), batch.run

    def spoiled(*values):
        found = run(*values)
        return dataclasses.replace(found, loss=math.nan)

    with monkeypatch.context() as patch:
        patch.setattr(batch, "run", spoiled)
        (record,) = steps(trainer, at, 1)
    assert record["skipped"].startswith("not finite: loss nan")
    assert record["loss"] is None
    assert record["gradient_norm"] > 0
    assert same(state(trainer), before)
    assert (at.step, at.rows, at.skipped, at.skipped_in_a_row) == (2, 4, 1, 1)
    (record,) = steps(trainer, at, 1)
    assert "skipped" not in record
    assert (at.skipped, at.skipped_in_a_row) == (1, 0)
    assert not same(state(trainer), before)


def test_a_gradient_that_is_not_finite_moves_nothing(trained, monkeypatch):
    trainer, at = trained(), Progress()
    before, run = state(trainer), batch.run

    def spoiled(*values):
        found = run(*values)
        found.gradients[-1][0] = math.inf
        return found

    monkeypatch.setattr(batch, "run", spoiled)
    (record,) = steps(trainer, at, 1)
    assert record["skipped"].endswith("and gradient norm inf")
    assert record["gradient_norm"] is None
    assert same(state(trainer), before)


def test_a_spike_moves_nothing_and_is_no_part_of_the_smoothed_loss(trained):
    trainer = trained()
    at = Progress(smooth=1.0, recent=Recent([1.0, 1.1] * 40, [1.0] * 80))
    before = state(trainer)
    (record,) = steps(trainer, at, 1)
    assert record["skipped"].startswith("spike: loss 6.")
    assert same(state(trainer), before)
    assert at.smooth == 1.0
    assert at.domains == {}
    assert len(at.recent.losses) == 81


def test_report_89_a_step_with_nothing_to_learn_is_skipped(trained):
    """No division by zero tokens: the step is skipped, its rows are read."""
    trainer, at = trained(idle=True), Progress()
    records = steps(trainer, at, 4)
    assert [record.get("skipped") for record in records] == [None, NOTHING, None, None]
    assert at.rows == 8
    assert all(math.isfinite(float(v.sum())) for v in state(trainer).values())


def test_loss_per_domain_is_that_of_all_tokens_since_the_last_record(trained):
    trainer, at = trained(), Progress()
    records = steps(trainer, at, 3)
    total, number = at.domains["words"]
    assert number == 3 * 2 * 11
    assert total / number == pytest.approx(sum(r["loss"] for r in records) / 3)


def test_counts_and_units_of_a_record(trained):
    """Tokens are those of all rows; rates are per second of the step."""
    trainer, at = trained(), Progress()
    first, second = steps(trainer, at, 2)
    assert (first["tokens"], second["tokens"]) == (24, 48)
    spent = second["seconds"] - first["seconds"]
    assert second["tokens_per_second"] == pytest.approx(24 / spent)
    assert (second["step"], second["steps"]) == (2, 9)


def test_mxfp8_activations_change_the_loss_a_little_and_it_falls(trained):
    found = {}
    for activations in ("plain", "mxfp8"):
        made = trained(activations=activations, learning_rate=2e-2), Progress()
        found[activations] = [record["loss"] for record in steps(*made, 6)]
    plain, narrow = found["plain"], found["mxfp8"]
    assert plain[0] == narrow[0], "experts begin at zero"
    assert plain[1:] != narrow[1:]
    assert abs(plain[-1] - narrow[-1]) < 0.1 * plain[-1]


def test_attention_of_mla_stays_in_single_precision(trained, monkeypatch):
    """Of a bfloat16 model too, in training; inference is as it was."""
    trainer, attend, seen = trained(), mla.attend_heads, []
    layers = [m for m in trainer.model.modules() if isinstance(m, MLA)]
    assert [layer.wide_output for layer in layers] == [True, True]

    def watch(*given):
        out = attend(*given)
        seen.append(out.dtype)
        return out

    monkeypatch.setattr(mla, "attend_heads", watch)
    layer, x = layers[0].bfloat16(), torch.randn(1, 5, 32, dtype=torch.bfloat16)
    assert layer(x, None, (2, 3)).dtype == torch.bfloat16
    assert seen == [torch.float32] * 2
    with torch.no_grad():
        layer(x)
    assert seen[2:] == [torch.bfloat16]


def test_two_runs_of_a_recipe_are_the_same_at_every_step(trained):
    timed = ("seconds", "tokens_per_second")
    runs = []
    for _ in range(2):
        trainer, at = trained(optimizer="muon", balance="quantile"), Progress()
        told = steps(trainer, at, 4)
        runs.append([{k: v for k, v in r.items() if k not in timed} for r in told])
    assert runs[0] == runs[1]
