"""k3.verify.seeded: weights regenerated from a salt."""

import numpy as np
import pytest

from k3.verify import seeded


def test_the_generator_is_the_original_mt19937():
    """First outputs of init_genrand(5489), the reference implementation's default."""
    generator = np.random.MT19937()
    generator._legacy_seeding(5489)
    assert generator.random_raw(3).tolist() == [3499211612, 581869302, 3890346734]


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("model.layers.0.self_attn.dt_bias", -4, 1),
        ("model.layers.0.self_attn.A_log", 0, np.log(16)),
        ("model.layers.0.input_layernorm.weight", 0.8, 1.2),
        ("model.layers.0.self_attn.o_norm.weight", 0.8, 1.2),
        ("model.layers.0.mlp_res_proj.weight", -0.08, 0.08),
        ("lm_head.weight", -0.08, 0.08),
    ],
)
def test_ranges_follow_the_names(name, low, high):
    value = seeded.parameter("salt", name, [63, 31])
    assert value.dtype == np.float32
    assert value.shape == (63, 31)
    assert low - 1e-6 <= value.min() < low + 0.05 * (high - low)
    assert high - 0.05 * (high - low) < value.max() <= high + 1e-6


def test_the_padding_row_is_zero_and_the_salt_matters():
    shapes = {"model.embed_tokens.weight": [5, 3]}
    made = seeded.weights("a", shapes, pad_id=4)["model.embed_tokens.weight"]
    assert (made[4] == 0).all()
    assert (made[:4] != 0).all()
    other = seeded.weights("b", shapes, pad_id=4)["model.embed_tokens.weight"]
    assert (made[:4] != other[:4]).all()
