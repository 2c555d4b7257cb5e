"""Resident memory of a load, each measured in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from k3.checkpoint import shards
from k3.checkpoint.header import ITEM_BYTES
from k3.checkpoint.source import DTYPES
from k3.checkpoint.survey import table

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "memory.py"
MATRIX = 1024 * 1024 // 2 + 1024 * 1024 // 32


@pytest.fixture
def large(small_config, tmp_path):
    """80 MB of packed experts: 3 layers of 16, three matrices of 1024 x 1024 each."""
    sizes = {"routed_expert_hidden_size": 1024, "moe_intermediate_size": 1024}
    config = small_config(num_experts=16, **sizes)
    entries = table(config, "packed")

    def value(name):
        shape, dtype = entries[name]
        if name.endswith(("_scale", "A_log")):
            fill = 120 if dtype == "U8" else 0
            return torch.full(shape, fill, dtype=DTYPES[dtype])
        if dtype == "U8":
            return torch.randint(0, 256, shape, dtype=torch.uint8)
        return torch.randn(shape).to(DTYPES[dtype])

    shards.write(tmp_path, shards.split(entries, 30_000_000), value, config)
    return tmp_path


def test_packed_adds_its_size_and_mmap_what_is_used(large):
    command = [sys.executable, BENCHMARK, large, "--modes", "packed", "mmap", "--json"]
    # malloc gives large blocks back at once; else it keeps some, by what came before.
    steady = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=steady
    )
    measured = json.loads(done.stdout)
    size, packed, mapped = (measured[k] for k in ("file_bytes", "packed", "mmap"))
    experts = 3 * 16 * 3 * MATRIX
    assert size > experts > 0.8 * size
    # Not less than the experts either: they are in memory, not mapped.
    assert experts < packed["added"] <= 1.3 * size
    assert packed["peak"] <= 1.3 * size
    assert mapped["added"] < size - experts + 0.2 * experts
    arithmetic = packed["used"] - packed["added"]
    came_in = mapped["used"] - mapped["added"] - arithmetic
    used = 3 * 3 * 3 * MATRIX
    assert 0.5 * used < came_in < 1.7 * used


def test_sizes_of_items_agree_with_torch():
    for name, dtype in DTYPES.items():
        assert ITEM_BYTES[name] == dtype.itemsize
