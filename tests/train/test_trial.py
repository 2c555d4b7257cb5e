"""Runs in memory: every step told, the same rows for all, the start that was asked."""

import dataclasses

import pytest
import torch

from k3.data.packing import Row
from k3.train import balance, pretrain, trial


class Rows:
    """Rows of counting tokens, a pure function of their number."""

    domains = ("text",)

    def __init__(self, tokens):
        self.tokens = tokens

    def row(self, number):
        ids = (torch.arange(self.tokens + 1) + 7 * number)[None] % 300
        return Row(
            ids=ids[:, :-1],
            targets=ids[:, 1:],
            learned=torch.ones(1, self.tokens, dtype=torch.bool),
            domains=torch.zeros(1, self.tokens, dtype=torch.uint8),
            cu_seqlens=torch.tensor([0, self.tokens]),
        )


def test_a_trial_tells_every_step_and_can_be_repeated(small):
    recipe = dataclasses.replace(small, steps=2, tokens=9, workers=1)
    model, records = trial.run(recipe, Rows)
    again, others = trial.run(recipe, Rows)
    assert [r["loss"] for r in records] == [r["loss"] for r in others]
    assert len(records) == 2
    for key in ("loads", "expert_loads"):
        assert [sum(map(sum, r[key])) for r in records] == [4 * 2 * 18] * 2
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


def test_an_unbalanced_start_is_evened_or_stays(small):
    seen = {}
    for rule in ("none", "quantile"):
        recipe = dataclasses.replace(small, steps=2, tokens=40, balance=rule, workers=1)
        _, records = trial.run(recipe, Rows, trial.unbalance)
        seen[rule] = [r["expert_max_over_mean"] for r in records]
    assert seen["none"][0] == seen["quantile"][0] == 4
    assert seen["none"][1] > 3 > seen["quantile"][1]


def test_unbalance_spans_what_is_asked(small):
    model = pretrain.fresh(small)
    trial.unbalance(model, 0.25)
    for bias in balance.biases(model):
        assert (float(bias[0]), float(bias[-1])) == (-0.25, 0.25)


def test_loss_is_the_mean_over_learned_targets(small):
    model = pretrain.fresh(small)
    rows = [Rows(5).row(0), Rows(11).row(1)]
    rows[1].learned[0, 4:] = False
    # The head starts at zero: every token is as likely as any other.
    want = torch.tensor(float(small.config.text.vocab_size)).log().item()
    assert trial.loss(model, rows) == pytest.approx(want, rel=1e-5)
