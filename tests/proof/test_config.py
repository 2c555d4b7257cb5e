"""Layer kinds, counts and sizes: the logic's functions are the configuration's."""

import pytest

from k3 import recipes
from k3.logic.falsify import call
from k3.proof import config, config_sizes
from k3.spec import model


@pytest.mark.parametrize("layers", [1, 4, 7, 18])
def test_layer_kinds_and_counts_are_those_of_the_spec(layers):
    for n in range(1, layers + 1):
        assert call(config.IS_MLA, [layers, n]) == model.is_mla(n, layers)
    kda, mla = model.layer_counts(layers)
    assert call(config.MLA_LAYERS, [layers, layers]) == mla
    a, b = divmod(layers, 4)
    assert (kda, mla) == (layers - mla, a + (b != 0))


@pytest.mark.parametrize(("block", "n"), [(1, 5), (3, 8), (12, 24), (12, 30)])
def test_division_is_that_of_python(block, n):
    assert call(config.WHOLE, [block, n]) == n // block
    assert call(config.REST, [block, n]) == n % block
    assert call(config_sizes.SOURCES, [block, n]) == 1 + -(-n // block)


def test_the_released_counts():
    text = recipes.released().text
    kinds = [text.is_mla(i) for i in range(text.num_hidden_layers)]
    assert kinds == [model.is_mla(i + 1, 93) for i in range(93)]
    assert (sum(kinds), len(kinds) - sum(kinds)) == (24, 69)
    assert text.attn_res_sources == 9


def test_the_released_sizes():
    text, vision = recipes.released().text, recipes.released().vision
    for name, value in config_sizes.RELEASED.items():
        found = [getattr(part, name) for part in (text, vision) if hasattr(part, name)]
        assert found in ([], [value]), name
    row = call(config_sizes.ROW, [text.kv_lora_rank, text.qk_rope_head_dim])
    assert row == text.mla_row_scalars == 576
    heads = text.num_attention_heads
    parts = [text.qk_nope_head_dim, text.qk_rope_head_dim, text.v_head_dim]
    assert call(config_sizes.EXPANDED, [heads, *parts]) == text.mla_expanded_scalars
    linear = text.linear_attn_config
    state = call(config_sizes.STATE, [linear.num_heads, linear.head_dim, linear.v_dim])
    assert state == text.kda_state_scalars
    assert call(config_sizes.WELL_FORMED, list(config_sizes.RELEASED.values()))


def test_a_config_that_is_not_well_formed():
    wrong = {**config_sizes.RELEASED, "num_experts_per_token": 897}
    assert not call(config_sizes.WELL_FORMED, list(wrong.values()))
