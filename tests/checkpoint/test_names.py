"""The name table against the release's numbers and the golden files."""

import collections
import json
import math
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from k3 import recipes
from k3.checkpoint import names
from k3.config import K3Config
from k3.errors import RequestError

GOLDEN = Path(__file__).parents[1] / "golden"
TINY = GOLDEN / "tiny_release"


@pytest.fixture(scope="module")
def released():
    return names.expected(recipes.released())


def test_released_tensor_count(released):
    assert len(released) == 497_220


def test_released_bytes_by_part(released):
    parts: collections.Counter[str] = collections.Counter()
    for name, (shape, dtype) in released.items():
        part = "text" if name.startswith("language_model.") else "vision"
        part = "routed" if ".experts." in name else part
        parts[part] += math.prod(shape) * names.BITS[dtype] // 8
    assert parts == {
        "routed": 1_446_456_066_048,
        "text": 113_509_540_864,
        "vision": 894_717_952,
    }


def test_released_counts_by_name(released):
    digits = str.maketrans("", "", "0123456789")
    count = collections.Counter(name.translate(digits) for name in released)
    layer = "language_model.model.layers.."
    assert count[f"{layer}self_attn.A_log"] == 69
    assert count[f"{layer}self_attn.kv_a_proj_with_mqa.weight"] == 24
    assert count[f"{layer}self_attention_res_proj.weight"] == 93
    # w1, w2 and w3 fall together.
    assert count[f"{layer}block_sparse_moe.experts..w.weight_packed"] == 3 * 82_432
    assert count[f"{layer}mlp.gate_proj.weight"] == 1
    assert count["vision_tower.encoder.blocks..wqkv.weight"] == 27


@pytest.mark.parametrize(
    ("name", "shape", "dtype"),
    [
        ("language_model.lm_head.weight", (163840, 7168), "BF16"),
        ("language_model.model.layers.0.self_attn.A_log", (128,), "F32"),
        (
            "language_model.model.layers.0.self_attn.q_conv1d.weight",
            (12288, 1, 4),
            "F32",
        ),
        (
            "language_model.model.layers.92.self_attn.q_b_proj.weight",
            (18432, 1536),
            "BF16",
        ),
        (
            "language_model.model.layers.92.self_attn.kv_b_proj.weight",
            (24576, 512),
            "BF16",
        ),
        (
            "language_model.model.layers.1.block_sparse_moe.experts.895.w2.weight_scale",
            (3584, 96),
            "U8",
        ),
        ("mm_projector.proj.0.weight", (4096, 4096), "BF16"),
    ],
)
def test_released_entries(released, name, shape, dtype):
    assert released[name] == (shape, dtype)


def test_tiny_release_is_the_table():
    config = K3Config.load(TINY)
    table = names.expected(config)
    found = {}
    for file in TINY.glob("*.safetensors"):
        with safe_open(file, "np") as tensors:
            for name in tensors.keys():  # noqa: SIM118
                view = tensors.get_slice(name)
                found[name] = (tuple(view.get_shape()), view.get_dtype())
    assert found.keys() == table.keys()
    for name, (shape, dtype) in table.items():
        assert found[name][1] == dtype
        assert names.accepts(config, name, found[name][0], shape)
        assert name.endswith("A_log") or found[name][0] == shape


def test_text14_is_the_bare_table():
    golden = np.load(GOLDEN / "text14.npz")
    config = K3Config.from_dict(json.loads(golden["config"].item()))
    shapes = json.loads(golden["param_shapes"].item())
    table = names.expected(config)
    assert shapes.keys() == table.keys()
    assert all(names.accepts(config, n, tuple(shapes[n]), table[n][0]) for n in table)


def test_dense_experts():
    config = K3Config.load(TINY)
    packed, dense = names.expected(config), names.expected(config, "dense")
    at = "language_model.model.layers.1.block_sparse_moe.experts.10.w2.weight"
    assert dense[at] == ((64, 96), "BF16")
    assert packed[f"{at}_packed"] == ((64, 48), "U8")
    assert packed[f"{at}_scale"] == ((64, 3), "U8")
    assert len(packed) - len(dense) == 6 * 11 * 3
    with pytest.raises(RequestError, match="'packed' or 'dense': got 'fp8'"):
        names.expected(config, "fp8")


def test_mtp_layer_has_its_own_head_and_no_depth_mix():
    data = K3Config.load(TINY).to_dict()
    data["text_config"]["num_nextn_predict_layers"] = 1
    without, table = (
        names.expected(K3Config.load(TINY)),
        names.expected(K3Config.from_dict(data)),
    )
    at = "language_model.model.layers.7."
    added = {n.removeprefix(at) for n in table.keys() - without.keys()}
    assert all(n.startswith(at) for n in table.keys() - without.keys())
    assert table[f"{at}eh_proj.weight"] == ((40, 80), "BF16")
    assert {
        "enorm.weight",
        "hnorm.weight",
        "shared_head.norm.weight",
        "shared_head.head.weight",
        "embed_tokens.weight",
        "self_attn.kv_a_proj_with_mqa.weight",
        "block_sparse_moe.experts.10.w3.weight_packed",
    } <= added
    assert not [n for n in added if "_res_" in n]


def test_divided_attention_has_weights_for_the_pass_over_frames():
    data = K3Config.load(TINY).to_dict()
    joint = names.expected(K3Config.from_dict(data))
    data["vision_config"]["attention"] = "divided"
    divided = names.expected(K3Config.from_dict(data))
    at = "vision_tower.encoder.blocks.2."
    assert len(divided) - len(joint) == 3 * 3
    assert divided[f"{at}wqkv_time.weight"] == divided[f"{at}wqkv.weight"]
    assert divided[f"{at}wo_time.weight"] == divided[f"{at}wo.weight"]
    assert divided[f"{at}norm_time.weight"] == ((32,), "BF16")


@pytest.mark.parametrize(
    ("heads", "head_dim", "accepted"),
    [(96, 128, {128, 96}), (6, 4, {6, 8}), (5, 16, {16, 8, 5}), (8, 64, {64, 8})],
)
def test_report_50_a_log_lengths(heads, head_dim, accepted):
    data = recipes.released().to_dict()
    data["text_config"]["linear_attn_config"] |= {
        "num_heads": heads,
        "head_dim": head_dim,
    }
    config = K3Config.from_dict(data)
    name = "language_model.model.layers.0.self_attn.A_log"
    wanted = (max(heads, head_dim),)
    took = {n for n in range(200) if names.accepts(config, name, (n,), wanted)}
    assert took == accepted
    assert not names.accepts(config, name, (1, *wanted), wanted)
