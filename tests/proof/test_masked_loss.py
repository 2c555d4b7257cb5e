"""The masked loss: the logic's mean and gradient are the spec's."""

import random
from fractions import Fraction

import numpy as np
import pytest

from k3.logic.falsify import call
from k3.proof import masked_mean
from k3.spec import loss as spec

SIZES = [1, 3, 6]


def batch(size, seed):
    rng = np.random.default_rng(seed)
    random.seed(seed)
    logits = rng.normal(size=(size, 5))
    targets = [random.randrange(5) for _ in range(size)]
    mask = [random.random() < 0.6 for _ in range(size)]
    mask[random.randrange(size)] = True
    return rng, logits, targets, mask


@pytest.mark.parametrize("size", SIZES)
def test_the_mean_is_that_of_the_spec(size):
    for seed in range(20):
        _, logits, targets, mask = batch(size, seed)
        losses = [
            Fraction(float(spec.token_loss(z, t)))
            for z, t in zip(logits, targets, strict=True)
        ]
        inputs = [mask.__getitem__, losses.__getitem__, tuple(range(size))]
        ours = call(masked_mean.MEAN, inputs)
        assert float(ours) == pytest.approx(
            float(spec.next_token_loss(logits, targets, mask)), rel=1e-14
        )
        assert call(masked_mean.COUNT, [mask.__getitem__, tuple(range(size))]) == sum(
            mask
        )


def test_all_masked_is_zero():
    inputs = [lambda p: False, lambda p: Fraction(5), tuple(range(4))]
    assert call(masked_mean.MEAN, inputs) == 0


@pytest.mark.parametrize("size", SIZES)
def test_the_gradient_of_the_spec_is_the_derivative(size):
    for seed in range(20):
        rng, logits, targets, mask = batch(size, seed)
        step = rng.uniform(-0.3, 0.3, size=logits.shape)
        most = abs(step[np.array(mask)]).max()
        before = spec.next_token_loss(logits, targets, mask)
        after = spec.next_token_loss(logits + step, targets, mask)
        slope = (spec.logit_gradient(logits, targets, mask) * step).sum()
        assert abs(after - before - slope) <= 2 * most**2 + 1e-14
        wild = logits + 9 * ~np.array(mask)[:, None]
        assert spec.next_token_loss(wild, targets, mask) == pytest.approx(before)
