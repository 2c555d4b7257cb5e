"""The rules of quantization_config: MXFP4 weights and nothing else."""

from functools import partial
from typing import Any

from k3.config.rule import Rule, equal, value_at
from k3.config.section import NOTHING


def _is_off(name: str, section: Any) -> bool:
    return value_at(section, name) in (None, NOTHING)


QUANTIZATION = [
    *equal(
        {
            "quant_method": "compressed-tensors",
            "format": "mxfp4-pack-quantized",
        }
    ),
    Rule(
        "config_groups",
        "one group, named group_0",
        lambda q: list(q.config_groups) == ["group_0"],
    ),
    *equal(
        {
            f"config_groups.group_0.weights.{name}": value
            for name, value in {
                "num_bits": 4,
                "type": "float",
                "group_size": 32,
                "strategy": "group",
                "symmetric": True,
                "dynamic": False,
                "scale_dtype": "torch.uint8",
            }.items()
        }
    ),
    *[
        Rule(name, "null: k3 quantizes weights only", partial(_is_off, name))
        for name in (
            "config_groups.group_0.input_activations",
            "config_groups.group_0.output_activations",
            "kv_cache_scheme",
        )
    ],
]
