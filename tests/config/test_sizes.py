"""Derived sizes: the article's numbers, the release's, and the name table's sums."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from k3 import recipes
from k3.checkpoint import names
from k3.config import K3Config, sizes

GOLDEN = Path(__file__).parents[1] / "golden"


def text14() -> K3Config:
    data = json.loads(np.load(GOLDEN / "text14.npz")["config"].item())
    return K3Config.from_dict(data)


def variant() -> K3Config:
    """Other value width, odd head count, dense start, MTP, divided tower."""
    data = K3Config.load(GOLDEN / "tiny_release").to_dict()
    data["text_config"]["linear_attn_config"] |= {"value_head_dim": 7, "num_heads": 19}
    data["text_config"] |= {"first_k_dense_replace": 3, "num_nextn_predict_layers": 1}
    data["vision_config"] |= {"merge_kernel_size": [2, 3], "attention": "divided"}
    return K3Config.from_dict(data)


CONFIGS = {
    "released": recipes.released,
    "paper": recipes.paper,
    "tiny": lambda: K3Config.load(GOLDEN / "tiny_release"),
    "text14": text14,
    "variant": variant,
}


def test_article_numbers():
    text = recipes.released().text
    assert (len(text.kda_layers), len(text.mla_layers)) == (69, 24)
    assert (text.mla_row_scalars, text.mla_expanded_scalars) == (576, 30720)
    assert text.mla_expanded_scalars * 3 == text.mla_row_scalars * 160
    assert text.attn_res_sources == 9
    assert text.kda_state_scalars == 1_572_864
    assert text.conv_window_scalars == 3 * 3 * 12288
    assert 128 * text.mla_row_scalars == 73_728
    assert 128 * text.mla_expanded_scalars == 3_932_160


def test_report_80_mla_cache_counts_mla_layers_only():
    config = recipes.released()
    assert len(config.text.moe_layers) == 92
    assert config.text.mla_layers[-2:] == (91, 92)
    assert config.text.num_experts == 896
    for itemsize in (1, 2, 4):
        memory = sizes.memory(config, 1000, itemsize)
        assert memory.mla_bytes_per_token == 24 * 576 * itemsize


def test_released_parameters():
    count = sizes.parameters(recipes.released())
    assert count.total == 2_779_931_837_184
    assert count.padding == 2_208
    assert count.active == 104_189_614_848
    assert count.mtp == 0
    billions = {name: round(n / 1e9, 4) for name, n in count.components.items()}
    embedding = billions.pop("embedding"), billions.pop("lm_head")
    assert round(sum(embedding), 4) == 2.3488
    assert billions == {
        "routed_experts": 2722.7408,
        "kda": 30.6181,
        "shared_experts": 12.1551,
        "mla": 5.5727,
        "latent": 4.7273,
        "dense": 0.7267,
        "router": 0.5910,
        "norms": 0.0040,
        "vision": 0.4012,
        "projector": 0.0461,
    }


def test_paper_counts_the_mtp_layer_apart():
    paper, released = recipes.paper(), recipes.released()
    count = sizes.parameters(paper)
    assert count.mtp == 32_468_739_456
    assert count.total == sizes.parameters(released).total
    assert count.active == sizes.parameters(released).active


def test_released_bytes():
    assert sizes.stored_bytes(recipes.released()) == 1_560_860_324_864


def scalars(name: str, shape: tuple[int, ...]) -> int:
    per_entry = {"weight_packed": 2, "weight_scale": 0}
    return math.prod(shape) * per_entry.get(name.rpartition(".")[2], 1)


@pytest.mark.parametrize("name", CONFIGS)
def test_formulas_equal_the_name_table(name):
    config = CONFIGS[name]()
    table, count = names.expected(config), sizes.parameters(config)
    assert count.total + count.mtp == sum(scalars(n, s) for n, (s, _) in table.items())
    stored = sum(math.prod(s) * names.BITS[d] // 8 for s, d in table.values())
    assert sizes.stored_bytes(config) == stored


def test_memory_of_a_sequence():
    config = recipes.released()
    fixed = 69 * (1_572_864 * 4 + 110_592 * 2)
    assert sizes.state_bytes(config, 0) == fixed
    assert sizes.state_bytes(config, 1 << 20) == fixed + (1 << 20) * 27_648
    assert sizes.state_bytes(config, 7, itemsize=4) == (
        69 * (1_572_864 + 110_592) * 4 + 7 * 55_296
    )


def test_tokens_that_fit_a_budget():
    config = recipes.released()
    fixed = sizes.state_bytes(config, 0)
    assert sizes.context_tokens(config, fixed - 1) == 0
    assert sizes.context_tokens(config, fixed + 27_648 * 5 + 1) == 5
    for budget in (10**9, 80 * 2**30):
        tokens = sizes.context_tokens(config, budget)
        assert sizes.state_bytes(config, tokens) <= budget
        assert sizes.state_bytes(config, tokens + 1) > budget
