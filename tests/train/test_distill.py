"""MOPD: the reward is the spec's and carries no gradient; nine teachers by weight."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from k3.errors import RequestError
from k3.spec import rl as spec
from k3.train import distill

P = st.floats(1e-6, 1.0)


def test_there_are_the_nine_teachers_of_the_spec():
    found = [(t.domain, t.effort) for t in distill.TEACHERS]
    assert found == list(spec.TEACHERS)
    with pytest.raises(RequestError, match="got 'coding' and 'medium'"):
        distill.Teacher("coding", "medium")


@given(P, P, st.floats(0.1, 10))
def test_the_reward_is_eq_15(teacher, student, limit):
    got = distill.reward(
        torch.tensor([math.log(teacher)], dtype=torch.float64),
        torch.tensor([math.log(student)], dtype=torch.float64),
        limit,
    )
    assert float(got) == pytest.approx(
        float(spec.reward(teacher, student, limit)), abs=1e-9
    )


def test_no_gradient_goes_through_the_reward():
    teacher = torch.tensor([-1.0, -2.0], requires_grad=True)
    student = torch.tensor([-1.5, -0.5], requires_grad=True)
    assert not distill.reward(teacher, student, 5.0).requires_grad
    now = student
    distill.on_policy_loss(now, now.detach(), teacher, 5.0).sum().backward()
    assert teacher.grad is None
    # d(-r log p)/d log p = -r exactly: nothing of r's own derivative.
    assert student.grad.tolist() == [-0.5, 1.5]


def test_the_clipped_side_still_teaches():
    now = torch.tensor([-9.0], requires_grad=True)
    distill.on_policy_loss(
        now, now.detach(), torch.tensor([-0.1]), 2.0
    ).sum().backward()
    assert now.grad.tolist() == [-2.0]
    with pytest.raises(RequestError, match=r"limit R must be above 0: got 0\.0"):
        distill.reward(now, now, 0.0)


def test_the_dense_variant_is_the_divergence_when_k_is_all():
    generator = torch.Generator().manual_seed(1)
    p = torch.randn(3, 6, generator=generator).log_softmax(-1)
    logits = torch.randn(3, 6, generator=generator)
    ids = torch.arange(6).expand(3, 6)
    want = (p.exp() * (p - logits.log_softmax(-1))).sum(-1)
    assert torch.allclose(distill.dense_loss(logits, ids, p), want, atol=1e-5)
    top = p.topk(2)
    part = distill.dense_loss(logits, top.indices, top.values)
    assert bool((part >= -1e-6).all())
    assert bool((part <= want + 1e-5).all())
    same = distill.dense_loss(p, top.indices, top.values)
    assert torch.allclose(same, torch.zeros(3), atol=1e-5)


@pytest.mark.parametrize("sure", [3.0, 20.0, 200.0])
def test_the_dense_variant_teaches_a_student_that_is_too_sure(sure):
    """Its gradient is q - p of the named tokens, however little q leaves the rest."""
    logits = torch.tensor([[sure, 0.0, 0.0, 0.0]], requires_grad=True)
    ids, p = torch.tensor([[0, 1]]), torch.tensor([[0.5, 0.25]])
    distill.dense_loss(logits, ids, p.log()).sum().backward()
    q = logits.detach().double().softmax(-1)
    want = (q - torch.tensor([[0.5, 0.25, 0.125, 0.125]])).float()
    assert torch.allclose(logits.grad, want, atol=1e-5)


def test_teachers_are_drawn_by_weight():
    weights = dict(zip(distill.TEACHERS, [1.0, 0.0, 3.0], strict=False))
    drawn = [distill.pick(weights, i / 100) for i in range(100)]
    assert drawn.count(distill.TEACHERS[0]) == 25
    assert drawn.count(distill.TEACHERS[1]) == 0
    assert distill.pick(weights, 1.0) == distill.TEACHERS[2]
    with pytest.raises(RequestError, match="not all 0"):
        distill.pick({distill.TEACHERS[0]: 0.0}, 0.5)


def test_retention_is_the_share_of_the_gain():
    got = distill.retention(
        torch.tensor([0.9, 0.5, 0.4]),
        torch.tensor([1.0, 0.5, 0.8]),
        torch.tensor([0.0, 0.5, 0.4]),
    )
    assert got.tolist() == pytest.approx([0.9, 1.0, 0.0])
