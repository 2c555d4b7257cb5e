"""Muon against the spec: heads, momentum, the iteration, one step of the weights."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from readings import agree, tensor  # noqa: F401

from k3.spec import muon as spec
from k3.train import muon as fast
from k3.train import qk_clip
from k3.train.matrices import Cut


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 5))
def test_newton_schulz(rows, columns, steps):
    X = torch.randn(3, rows, columns, dtype=torch.float64)
    got = fast.newton_schulz(X, steps)
    for one, whole in zip(X, got, strict=True):
        agree.close(whole, spec.newton_schulz(one, steps), 1e-12, "newton_schulz")


def test_constants():
    assert tuple(map(float, spec.COEFFICIENTS)) == fast.COEFFICIENTS
    assert (spec.STEPS, float(spec.MOMENTUM)) == (fast.STEPS, fast.MOMENTUM)
    like = torch.ones(())
    want = float(spec.update_scale(3, 7, like))
    assert fast.update_scale(3, 7) == pytest.approx(want, rel=1e-15)


@pytest.mark.parametrize("cut", [Cut((6,)), Cut((2,), 3), Cut((1, 2), 2)])
def test_two_steps_of_one_parameter(cut):
    W, gradients = torch.randn(6, 5), torch.randn(2, 6, 5)
    held = {"w": W.clone()}
    optimizer = fast.Muon(held, {"w": cut}, decay=0.1, dtype=torch.float64)
    want, moment = blocks(W, cut), None
    for G in gradients:
        optimizer.step({"w": G.clone()}, 0.03)
        moment = moment or [torch.zeros_like(x) for x in want]
        for i, part in enumerate(blocks(G, cut)):
            moment[i], update = spec.momentum(moment[i], part)
            update = spec.newton_schulz(update)
            want[i] = spec.step(want[i], update, rate=0.03, decay=0.1)
    for got, one in zip(blocks(held["w"], cut), want, strict=True):
        agree.close(got, one, 1e-12, "two steps")


def blocks(W, cut):
    """The matrices of a parameter as the spec splits them: by groups, then sizes."""
    parts = [group.split(cut.sizes) for group in spec.split(W, cut.groups)]
    return [block for group in parts for block in group]


def test_heads_are_those_of_the_spec():
    W = torch.randn(12, 5)
    (views,) = Cut((4,), 3).views(W)
    assert torch.equal(views, spec.split(W, 3))
    views[1] += 1
    assert torch.equal(views, spec.split(W, 3))


def test_clip_factor():
    logits = torch.tensor([50.0, 100.0, 200.0])
    want = torch.tensor([float(spec.clip_factor(x)) for x in logits])
    agree.close(qk_clip.factor(logits, 100.0), want, 0.0, "clip")
