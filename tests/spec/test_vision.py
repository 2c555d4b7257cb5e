import numpy as np
import pytest
import torch
from readings import tensor
from readings.carriers import same

from k3.spec import vision, vision_position


def tower(rng, D=8, heads=2, size=4, blocks=2, divided=False):
    shapes = {
        "patch_embed.proj.weight": (D, 3, 2, 2),
        "patch_embed.pos_emb.weight": (3, 4, D),
        "encoder.final_layernorm.weight": (D,),
    }
    for b in range(blocks):
        at = f"encoder.blocks.{b}."
        shapes[f"{at}norm0.weight"] = shapes[f"{at}norm1.weight"] = (D,)
        shapes[f"{at}mlp.fc0.weight"] = (5, D)
        shapes[f"{at}mlp.fc1.weight"] = (D, 5)
        for suffix in ("", "_time") if divided else ("",):
            shapes[f"{at}wqkv{suffix}.weight"] = (3 * heads * size, D)
            shapes[f"{at}wo{suffix}.weight"] = (D, heads * size)
        if divided:
            shapes[f"{at}norm_time.weight"] = (D,)
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("attention", ["joint", "divided"])
def test_encoder_reads_alike(rng, attention):
    weights = tower(rng, divided=attention == "divided")
    grid = (2, 2, 4)
    patches = rng.normal(size=(16, 3, 2, 2))
    x = same(
        vision.encode, weights, patches, grid, heads=2, blocks=2, attention=attention
    )
    assert x.shape == (16, 8)


def test_divided_over_one_frame_still_runs_its_second_pass(rng):
    weights = tower(rng, divided=True)
    patches = rng.normal(size=(4, 3, 2, 2))
    kwargs = {"heads": 2, "blocks": 2}
    joint = vision.encode(weights, patches, (1, 2, 2), **kwargs)
    divided = vision.encode(weights, patches, (1, 2, 2), attention="divided", **kwargs)
    assert abs(joint - divided).max() > 1e-2
    still = {n: w * 0 if "wo_time" in n else w for n, w in weights.items()}
    same_again = vision.encode(still, patches, (1, 2, 2), attention="divided", **kwargs)
    np.testing.assert_allclose(same_again, joint)


def test_frames_do_not_see_each_other_in_the_first_pass_alone(rng):
    weights = {
        n: w * 0 if "wo_time" in n else w for n, w in tower(rng, divided=True).items()
    }
    patches = rng.normal(size=(8, 3, 2, 2))
    other = patches.copy()
    other[4:] += 1
    one, two = (
        vision.encode(weights, p, (2, 2, 2), heads=2, blocks=2, attention="divided")
        for p in (patches, other)
    )
    np.testing.assert_array_equal(one[:4], two[:4])


@pytest.mark.parametrize("size", [(3, 4), (2, 2), (5, 7), (1, 1), (6, 8)])
def test_stretch_is_bilinear(rng, size):
    table = rng.normal(size=(3, 4, 5))
    got = same(vision_position.stretch, table, *size, exact=True)
    channels = torch.tensor(table).permute(2, 0, 1)[None]
    wanted = torch.nn.functional.interpolate(channels, size, mode="bilinear")
    wanted = wanted[0].permute(1, 2, 0).reshape(-1, 5).numpy()
    np.testing.assert_allclose(got, wanted, atol=1e-12)


def test_time_is_sine_then_cosine(rng):
    got = same(vision_position.time, rng.normal(size=6), 3, 6)
    np.testing.assert_allclose(got[0], [0, 0, 0, 1, 1, 1])
    np.testing.assert_allclose(got[2, 1], np.sin(2 * 10000 ** (-1 / 3)))
    np.testing.assert_allclose(got[2, 4], np.cos(2 * 10000 ** (-1 / 3)))


def test_rotation_is_columns_first(rng):
    x = rng.normal(size=(6, 8))
    turn = same(vision_position.angles, x, (1, 2, 3), 8)
    # Patch 4 is row 1, column 1; patch 2 is row 0, column 2.
    np.testing.assert_allclose(turn[2], [2, 0, 2 * 0.01, 0])
    np.testing.assert_allclose(turn[4], [1, 1, 0.01, 0.01])
    turned = same(vision_position.rotate, x, turn)
    pairs = x.reshape(6, 4, 2)
    wanted = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * turn)
    np.testing.assert_allclose(turned.reshape(6, 4, 2)[..., 1], wanted.imag)
    two = vision_position.angles(x, (2, 2, 3), 8)
    np.testing.assert_array_equal(two[6:], turn)


def test_gelus_are_those_of_torch():
    x = np.linspace(-4, 4, 9)
    there = torch.tensor(x)
    tanh = torch.nn.functional.gelu(there, approximate="tanh").numpy()
    np.testing.assert_allclose(same(vision.gelu_tanh, x), tanh, atol=1e-14)
    erf = torch.nn.functional.gelu(there).numpy()
    np.testing.assert_allclose(same(vision.gelu, x), erf, atol=1e-14)


def test_merge_takes_the_mean_of_frames_row_first(rng):
    x = rng.normal(size=(2 * 2 * 4, 3))
    got = same(vision.merge, x, (2, 2, 4), exact=True)
    mean = x.reshape(2, 8, 3).mean(0)
    np.testing.assert_allclose(got[0], np.concatenate(mean[[0, 1, 4, 5]]))
    np.testing.assert_allclose(got[1], np.concatenate(mean[[2, 3, 6, 7]]))


def test_projector_reads_alike(rng):
    weights = {
        "proj.0.weight": rng.normal(size=(6, 6)),
        "proj.2.weight": rng.normal(size=(4, 6)),
        "post_norm.weight": rng.normal(size=4),
    }
    same(vision.project, weights, rng.normal(size=(3, 6)))
    inputs = [tensor.array(rng.normal(size=(2, 6))).requires_grad_()]
    there = {n: tensor.array(w) for n, w in weights.items()}
    assert torch.autograd.gradcheck(lambda x: vision.project(there, x), inputs)
