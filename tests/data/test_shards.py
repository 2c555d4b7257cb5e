"""Shards: what is written is what is mapped; what is damaged is named."""

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save

from k3.data import shards
from k3.data.examples import Example
from k3.errors import CheckpointError


def example(*ids, masked=()):
    learned = torch.ones(len(ids), dtype=torch.bool)
    learned[[0, *masked]] = False
    return Example(ids=torch.tensor(ids), learned=learned, domain="d")


@pytest.fixture
def path(tmp_path):
    shards.write(tmp_path / "s", [example(1, 2**32 - 1, 3), example(4)])
    return tmp_path / "s"


def test_what_is_written_is_mapped(path):
    shard = shards.read(path)
    assert isinstance(shard.tokens, np.memmap)
    assert shard.tokens.dtype == np.uint32
    assert shard.tokens.tolist() == [1, 2**32 - 1, 3, 4]
    assert shard.ends.tolist() == [3, 4]
    assert shard.learned is None
    assert [p.name for p in path.parent.iterdir()] == ["s"]


def test_any_reader_of_safetensors_reads_a_shard(path):
    assert load_file(path)["tokens"].tolist() == [1, 2**32 - 1, 3, 4]


def test_flags_are_kept_where_not_all_is_learned(tmp_path):
    shards.write(tmp_path / "s", [example(1, 2, 3, masked=[1]), example(4, 5)])
    assert shards.read(tmp_path / "s").learned.tolist() == [0, 0, 1, 0, 1]


def test_a_file_cut_anywhere_is_refused(path):
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 9), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="a shard is a whole file of tokens"):
            shards.read(path)


def stored(**arrays):
    return save(
        {name: np.asarray(value, dtype) for name, (value, dtype) in arrays.items()}
    )


U32, U64, U8 = np.uint32, np.uint64, np.uint8
WRONG = [
    stored(tokens=([1, 2], U32)),
    stored(tokens=([1, 2], U32), ends=([1], U64)),
    stored(tokens=([1, 2], U32), ends=([2, 2], U64)),
    stored(tokens=([1, 2], U32), ends=([0, 2], U64)),
    stored(tokens=([1, 2], U32), ends=([2], U32)),
    stored(tokens=([1, 2], U64), ends=([2], U64)),
    stored(tokens=([[1, 2]], U32), ends=([2], U64)),
    stored(tokens=([1, 2], U32), ends=([2], U64), learned=([1], U8)),
    stored(tokens=(np.zeros(0), U32), ends=([0], U64)),
    b"",
    b"\xff" * 99,
    (2).to_bytes(8, "little") + b"[]",
    (4).to_bytes(8, "little") + b"\xff\xfe{}",
]


@pytest.mark.parametrize("content", WRONG)
def test_a_file_that_is_no_shard_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="build the data again"):
        shards.read(path)


@pytest.mark.parametrize("offsets", [[-8, 8], [0, 4], [8, 0], [8, 1000], ["0", 8], [0]])
def test_ranges_outside_the_file_are_refused(path, offsets):
    header = {
        "ends": {"dtype": "U64", "shape": [1], "data_offsets": [0, 8]},
        "tokens": {"dtype": "U32", "shape": [2], "data_offsets": offsets},
    }
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes([2, *[0] * 15]))
    with pytest.raises(CheckpointError, match="is not"):
        shards.read(path)


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"gone is not \(No such file"):
        shards.read(tmp_path / "gone")
