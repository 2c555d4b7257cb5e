from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from readings import tensor
from readings.carriers import convert, fractions, same

from k3.spec import moe, situ


def layer(rng, D=6, L=4, F=5, E=7, shared=8):
    shapes = {
        "gate.weight": (E, D),
        "gate.e_score_correction_bias": (E,),
        "routed_expert_down_proj.weight": (L, D),
        "routed_expert_norm.weight": (L,),
        "routed_expert_up_proj.weight": (D, L),
        "shared_experts.gate_proj.weight": (shared, D),
        "shared_experts.up_proj.weight": (shared, D),
        "shared_experts.down_proj.weight": (D, shared),
    }
    for e in range(E):
        shapes[f"experts.{e}.w1.weight"] = (F, L)
        shapes[f"experts.{e}.w2.weight"] = (L, F)
        shapes[f"experts.{e}.w3.weight"] = (F, L)
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def test_layer_reads_alike(rng):
    weights, x = layer(rng), rng.normal(size=6)
    y = same(moe.layer, weights, x, 3)
    scores = moe.router(weights["gate.weight"], x)
    chosen, p = moe.route(scores, weights["gate.e_score_correction_bias"], 3)
    np.testing.assert_array_equal(moe.given_route(weights, x, chosen, p), y)


def test_two_shared_experts_are_one_wide_one(rng):
    weights, x = layer(rng), rng.normal(size=6)
    gate, up, down = (
        weights[f"shared_experts.{n}_proj.weight"] for n in ("gate", "up", "down")
    )
    parts = [
        situ.expert(gate[at], up[at], down[:, at], x)
        for at in (slice(0, 4), slice(4, 8))
    ]
    np.testing.assert_allclose(situ.expert(gate, up, down, x), sum(parts))


@settings(deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8), st.data())
def test_top_k_is_top_k_with_ties_to_the_lower_index(values, data):
    k = data.draw(st.integers(1, len(values)))
    scores = np.array(values, dtype=float)
    chosen = moe.top_k(scores, k)
    assert moe.is_top_k(scores, chosen)
    assert moe.is_top_k(scores + 5, chosen)
    for e in range(len(values)):
        if e not in chosen:
            assert all(values[c] > values[e] or c < e for c in chosen)
    assert moe.top_k(fractions(scores), k) == chosen
    assert moe.top_k(torch.tensor(scores), k) == chosen


def test_wrong_choices_are_not_top_k():
    scores = np.array([3.0, 1.0, 2.0])
    assert not moe.is_top_k(scores, [0, 1])
    assert not moe.is_top_k(scores, [0, 0])


def test_bias_chooses_but_does_not_weigh(rng):
    scores, bias = abs(rng.normal(size=5)), rng.normal(size=5)
    chosen, p = moe.route(fractions(scores), fractions(bias), 3, tiny=0)
    assert sum(p) == Fraction(1)
    exact = fractions(scores)
    assert p[1] / p[0] == exact[chosen[1]] / exact[chosen[0]]
    same(moe.route, scores, bias, 3, tiny=0, exact=True)
    doubled = moe.route(scores, bias, 3, scaling=2.5)[1]
    assert doubled.sum() == pytest.approx(2.5)


def test_gradient_flows_through_scores(rng):
    scores = tensor.array(rng.uniform(0.1, 1, 5)).requires_grad_()
    bias = convert(rng.normal(size=5), tensor.array)
    assert torch.autograd.gradcheck(lambda s: moe.route(s, bias, 3)[1], [scores])
