import numpy as np
import torch
from readings import tensor
from readings.carriers import same

from k3.spec import loss

TARGETS, MASK = [2, 0, 3, 1], [True, False, True, True]


def test_reads_alike_and_is_the_cross_entropy(rng):
    logits = rng.normal(size=(4, 5))
    got = same(loss.next_token_loss, logits, TARGETS, MASK)
    wanted = torch.nn.functional.cross_entropy(
        torch.tensor(logits)[MASK], torch.tensor(TARGETS)[MASK]
    )
    np.testing.assert_allclose(got, wanted.item())
    assert (same(loss.token_loss, logits[0], 1)) > 0


def test_gradient_formula_is_the_derivative(rng):
    logits = rng.normal(size=(4, 5))
    formula = same(loss.logit_gradient, logits, TARGETS, MASK)
    there = tensor.array(logits).requires_grad_()
    loss.next_token_loss(there, TARGETS, MASK).backward()
    np.testing.assert_allclose(formula, there.grad.numpy(), atol=1e-14)
    assert (formula[1] == 0).all()
    np.testing.assert_allclose(formula.sum(1), 0, atol=1e-15)
    assert torch.autograd.gradcheck(
        lambda x: loss.next_token_loss(x, TARGETS, MASK), [there]
    )


def test_extreme_logits_stay_finite():
    logits = np.array([[1000.0, 0.0]])
    assert loss.next_token_loss(logits, [0], [True]) == 0
    assert loss.next_token_loss(logits, [1], [True]) == 1000


def test_shift_and_one_hot(rng):
    assert loss.shift([5, 6, 7]) == ([5, 6], [6, 7])
    got = same(loss.one_hot, rng.normal(size=3), 1, exact=True)
    np.testing.assert_array_equal(got, [0, 1, 0])
