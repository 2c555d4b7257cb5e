"""Write a random checkpoint of a shape that the results name: B9 or mini.

    python benchmarks/checkpoints.py B9 DIR

B9 is K3 with 9 layers and 75.9 M weights, 29.8 M of them active; mini has 8 wide layers
and is bound by memory. Released layout, MXFP4 experts, weights as initialized.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from k3.checkpoint.save import save
from k3.config import K3Config
from k3.model import Model

BASE = Path(__file__).parents[1] / "tests" / "golden" / "tiny_release" / "config.json"
COMMON = {"first_k_dense_replace": 1, "max_position_embeddings": 1048576}
SHAPES: dict[str, dict[str, Any]] = {
    "B9": {
        "vocab_size": 4096,
        "hidden_size": 512,
        "num_hidden_layers": 9,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "intermediate_size": 1024,
        "q_lora_rank": 192,
        "kv_lora_rank": 128,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32,
        "v_head_dim": 64,
        "num_experts": 32,
        "num_experts_per_token": 4,
        "num_shared_experts": 2,
        "moe_intermediate_size": 256,
        "routed_expert_hidden_size": 256,
        "attn_res_block_size": 3,
    },
    "mini": {
        "vocab_size": 8192,
        "hidden_size": 2048,
        "num_hidden_layers": 8,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "intermediate_size": 6144,
        "q_lora_rank": 768,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "num_experts": 128,
        "num_experts_per_token": 8,
        "num_shared_experts": 1,
        "moe_intermediate_size": 512,
        "routed_expert_hidden_size": 1024,
        "attn_res_block_size": 4,
    },
}
LINEAR = {
    "B9": {
        "full_attn_layers": [4, 8, 9],
        "kda_layers": [1, 2, 3, 5, 6, 7],
        "head_dim": 64,
        "num_heads": 8,
    },
    "mini": {
        "full_attn_layers": [4, 8],
        "kda_layers": [1, 2, 3, 5, 6, 7],
        "head_dim": 128,
        "num_heads": 16,
    },
}


def config(name: str) -> K3Config:
    values = json.loads(BASE.read_text())
    values["text_config"] |= COMMON | SHAPES[name]
    values["text_config"]["linear_attn_config"] |= LINEAR[name]
    values["text_config"]["linear_attn_config"].pop("value_head_dim", None)
    values.pop("vision_config", None)
    return K3Config.from_dict(values)


def write(name: str, folder: Path) -> None:
    model = Model(config(name), dtype=torch.bfloat16).init_weights(seed=0)
    save(model, folder, experts="packed")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=SHAPES)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    write(args.name, args.folder)
    print(f"{args.folder}: {args.name}")
