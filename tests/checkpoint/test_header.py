"""Headers: whole files read, damaged ones refused with everything that is wrong."""

import json
import shutil
import struct
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from k3.checkpoint import header
from k3.errors import CheckpointError

TINY = Path(__file__).parents[1] / "golden" / "tiny_release"


def write(path: Path, head, data: bytes = b"") -> Path:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def item(begin: int, end: int, dtype="U8", shape=None):
    shape = [end - begin] if shape is None else shape
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def refused(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        header.read(path)
    return str(caught.value)


def test_read_agrees_with_safetensors(tmp_path):
    tensors = {
        "a": torch.zeros(3, 5, dtype=torch.bfloat16),
        "b": torch.zeros(7, dtype=torch.uint8),
        "empty": torch.zeros(0, 4),
        "scalar": torch.tensor(1.0),
    }
    save_file(tensors, tmp_path / "x.safetensors", metadata={"format": "pt"})
    entries = header.read(tmp_path / "x.safetensors")
    assert {name: entry.shape for name, entry in entries.items()} == {
        name: tuple(tensor.shape) for name, tensor in tensors.items()
    }
    assert entries["a"].dtype == "BF16"
    assert entries["a"].nbytes == 30


def test_index_of_the_release_names_every_tensor():
    files = header.index(TINY)
    assert list(files) == [f"model-0000{i}-of-000003.safetensors" for i in (1, 2, 3)]
    for name, tensors in files.items():
        assert sorted(header.read(TINY / name)) == sorted(tensors)
    assert sum(map(len, files.values())) == 604


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 710_599))
def test_a_file_cut_anywhere_is_refused(tmp_path_factory, size):
    whole = TINY / "model-00001-of-000003.safetensors"
    cut = tmp_path_factory.mktemp("cut") / "x.safetensors"
    cut.write_bytes(whole.read_bytes()[:size])
    assert "cut off" in refused(cut)
    cut.unlink()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
@example(b"{}")
def test_garbage_never_raises_anything_else(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("bytes") / "x.safetensors"
    path.write_bytes(data)
    refused(path)
    text = struct.pack("<Q", len(data)) + data
    path.write_bytes(text)
    if data.strip() == b"{}":
        assert header.read(path) == {}
    else:
        refused(path)


def test_garbled_headers_are_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    assert "is garbled" in refused(write(path, b"{not json"))
    assert "is garbled" in refused(write(path, b"[" * 5000))
    assert "must be a JSON object" in refused(write(path, b"[1]"))
    assert "named twice: a" in refused(write(path, b'{"a": 1, "a": 2}'))
    path.write_bytes(struct.pack("<Q", 2**63) + b"{}")
    assert "cut off" in refused(path)


def test_ranges_are_refused_all_at_once(tmp_path):
    path = tmp_path / "x.safetensors"
    message = refused(
        write(path, {"a": item(0, 8), "b": item(4, 12), "c": item(12, 99)}, b"0" * 12)
    )
    assert "b overlaps a by 4 bytes" in message
    assert "c ends at byte" in message
    assert "2 problems" in message
    message = refused(
        write(
            path,
            {
                "wrong size": item(0, 3, "F32", [1]),
                "type": item(0, 4, "F5", [1]),
                "negative": item(0, 4, "U8", [-4]),
                "bool": item(0, 1, "U8", [True]),
                "list": [],
            },
        )
    )
    for words in (
        "wrong size: F32 (1,) takes 4 bytes: the header gives it 3",
        "unknown dtype 'F5'",
        "negative: shape [-4]",
        "bool: shape [True]",
        "list: an entry has",
        "5 problems",
    ):
        assert words in message


def test_gaps_and_tails_are_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    head = {"a": item(0, 4), "b": item(6, 8)}
    assert "2 bytes before b" in refused(write(path, head, b"0" * 8))
    assert "3 bytes after the last" in refused(write(path, {"a": item(0, 4)}, b"0" * 7))
    assert header.read(write(path, {}, b"")) == {}


def test_absent_and_directory(tmp_path):
    assert "there is no file" in refused(tmp_path / "x.safetensors")
    (tmp_path / "x.safetensors").mkdir()
    assert "is a directory" in refused(tmp_path / "x.safetensors")


def indexed(folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        header.index(folder)
    return str(caught.value)


def test_index_lists_every_absent_file(tmp_path):
    shutil.copy(TINY / header.INDEX, tmp_path)
    (tmp_path / "model-00003-of-000003.safetensors").mkdir()
    message = indexed(tmp_path)
    assert "model-00001-of-000003.safetensors is absent: 301 tensors" not in message
    assert "model-00001-of-000003.safetensors is absent: 300 tensors" in message
    assert "model-00002-of-000003.safetensors is absent" in message
    assert "model-00003-of-000003.safetensors is a directory" in message


def test_index_without_an_index_file(tmp_path):
    assert "holds no weights" in indexed(tmp_path)
    for number in (1, 3):
        shutil.copy(TINY / f"model-0000{number}-of-000003.safetensors", tmp_path)
    assert "model-00002-of-000003.safetensors is absent" in indexed(tmp_path)
    shutil.copy(TINY / "model-00002-of-000003.safetensors", tmp_path)
    assert sum(map(len, header.index(tmp_path).values())) == 604
    (tmp_path / "model-00001-of-000002.safetensors").write_bytes(b"")
    assert "mixes shards" in indexed(tmp_path)
    write(tmp_path / header.SINGLE, {"a": item(0, 1)}, b"0")
    assert header.index(tmp_path) == {header.SINGLE: ["a"]}


def test_damaged_indexes_are_refused(tmp_path):
    path = tmp_path / header.INDEX
    for text in ("", "[]", "{}", '{"weight_map": 3}', '{"weight_map": {}}', "[" * 9999):
        path.write_text(text)
        assert "weight_map" in indexed(tmp_path)
    names = {"a": "../x.safetensors", "b": 3, "c": "", "d": "/etc/passwd"}
    path.write_text(json.dumps({"weight_map": names}))
    message = indexed(tmp_path)
    assert "4 problems" in message
    assert "a: '../x.safetensors' is not the name of a file" in message
