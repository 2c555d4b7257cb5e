import numpy as np
import torch
from readings import tensor
from readings.carriers import same

from k3.spec import mla

SHAPES = {
    "q_a_proj.weight": (5, 6),
    "q_a_layernorm.weight": (5,),
    "q_b_proj.weight": (2 * (3 + 2), 5),
    "kv_a_proj_with_mqa.weight": (4 + 2, 6),
    "kv_a_layernorm.weight": (4,),
    "kv_b_proj.weight": (2 * (3 + 7), 4),
    "g_proj.weight": (2 * 7, 6),
    "o_proj.weight": (6, 2 * 7),
}


def layer(rng):
    return {name: rng.normal(size=shape) for name, shape in SHAPES.items()}


def test_forms_agree_and_read_alike(rng):
    weights, xs = layer(rng), list(rng.normal(size=(4, 6)))
    cache, wide = same(mla.sequence, weights, xs, heads=2)
    _, narrow = same(mla.sequence, weights, xs, heads=2, absorb=True)
    np.testing.assert_allclose(wide, narrow, atol=1e-12)
    latents, shared = np.zeros((0, 4)), np.zeros((0, 2))
    for t, x in enumerate(xs):
        latents, shared, y = mla.packed_step(weights, latents, shared, x, heads=2)
        np.testing.assert_allclose(y, wide[t], atol=1e-12)
    np.testing.assert_array_equal(latents, mla.pack(cache)[0])
    np.testing.assert_array_equal(shared, mla.pack(cache)[1])


def test_step_appends_and_keeps_the_past(rng):
    weights, xs = layer(rng), list(rng.normal(size=(3, 6)))
    cache, _ = mla.sequence(weights, xs[:2], heads=2)
    grown, _ = mla.step(weights, cache, xs[2], heads=2)
    assert len(grown) == 3
    assert all(one is other for one, other in zip(grown, cache, strict=False))


def test_one_row_is_returned_whole(rng):
    W, row = rng.normal(size=(3 + 7, 4)), rng.normal(size=(1, 4))
    out = same(mla.expanded, rng.normal(size=5), W, row, rng.normal(size=(1, 2)))
    np.testing.assert_allclose(out, W[3:] @ row[0])


def test_gradients_of_both_forms(rng):
    args = (rng.normal(size=s) for s in ((5,), (10, 4), (3, 4), (3, 2)))
    inputs = [tensor.array(a).requires_grad_() for a in args]
    assert torch.autograd.gradcheck(mla.expanded, inputs)
    assert torch.autograd.gradcheck(mla.absorbed, inputs)
