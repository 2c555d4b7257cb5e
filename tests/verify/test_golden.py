"""The released model's numbers, reproduced; and files that cannot be read."""

from pathlib import Path

import numpy as np
import pytest
import torch

import k3
from k3.errors import CheckpointError
from k3.verify.compare import compare, seeded_model
from k3.verify.golden import Golden

FOLDER = Path(__file__).parents[1] / "golden"
DTYPES = [torch.float64, torch.float32]
# issue "Must show": the largest error over the golden's largest value.
TEXT = {torch.float64: 2e-5, torch.float32: 5e-5}
LAYERS = {torch.float64: 1e-5, torch.float32: 5e-5}
PICTURES, PROJECTOR = 1e-4, 1e-5


def errors(report):
    return {entry.name: entry.error for entry in report.entries}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("experts", ["packed", "dequantized"])
def test_tiny_release_is_reproduced(dtype, experts):
    model = k3.load(FOLDER / "tiny_release", dtype=dtype, experts=experts)
    report = compare(model, FOLDER / "tiny_release" / "golden.npz")
    found = errors(report)
    assert report.ok
    assert report.unknown == []
    texts = ["logits_prefill", "logits_decode", "logits_full"]
    texts += [f"state_{layer}" for layer in (0, 1, 2, 4, 5)]
    assert max(found[name] for name in texts) < TEXT[dtype]
    assert max(found[f"proj_{i}"] for i in range(3)) < PROJECTOR
    assert found["mm_logits"] < PICTURES
    assert found["greedy_tokens"] == 0
    assert len(found) == len(texts) + 5


@pytest.mark.parametrize("dtype", DTYPES)
def test_text14_is_reproduced_at_every_layer(dtype):
    model = seeded_model(FOLDER / "text14.npz", dtype=dtype)
    report = compare(model, FOLDER / "text14.npz")
    found = errors(report)
    assert report.unknown == []
    assert len(found) == 14 * 2 + 3
    assert max(found.values()) < LAYERS[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
def test_text14_is_reproduced_at_every_position(dtype):
    golden = Golden.load(FOLDER / "text14.npz")
    model = seeded_model(golden, dtype=dtype)
    with torch.no_grad():
        got = model(torch.from_numpy(golden["ids"])[None])[0].numpy()
    gap = np.abs(got - golden["logits_full"]).max(-1)
    assert (gap / np.abs(golden["logits_full"]).max() < LAYERS[dtype]).all()


def test_keys_come_in_the_order_of_the_computation():
    names = Golden.load(FOLDER / "text14.npz").expected()
    assert names[:2] == ["layers.0.self_attn", "layers.0.out_prefix"]
    assert names.index("layers.9.self_attn") < names.index("layers.10.self_attn")
    assert names[-3:] == ["logits_prefill", "logits_decode", "logits_full"]


def test_a_file_that_is_no_npz_is_refused(tmp_path):
    (tmp_path / "golden.npz").write_text("not a zip")
    with pytest.raises(CheckpointError, match=r"readable \.npz file"):
        Golden.load(tmp_path / "golden.npz")
    with pytest.raises(CheckpointError, match=r"absent\.npz"):
        Golden.load(tmp_path / "absent.npz")


def test_a_pickle_inside_is_refused(tmp_path):
    np.savez(tmp_path / "golden.npz", ids=np.array([{"a": 1}], dtype=object))
    with pytest.raises(CheckpointError, match=r"readable \.npz file"):
        Golden.load(tmp_path / "golden.npz")


def test_a_missing_input_is_named(tmp_path):
    np.savez(tmp_path / "golden.npz", logits_full=np.zeros((2, 3)))
    with pytest.raises(CheckpointError, match="must hold ids beside what it holds"):
        Golden.load(tmp_path / "golden.npz")["ids"]


@pytest.mark.parametrize("length", [0, 3, 40, -30])
def test_an_empty_or_cut_file_is_refused(tmp_path, length):
    path = tmp_path / "golden.npz"
    np.savez(path, ids=np.arange(50))
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CheckpointError, match=r"readable \.npz file"):
        Golden.load(path)


def test_one_array_is_no_set_of_numbers(tmp_path):
    np.save(tmp_path / "golden.npy", np.arange(3))
    with pytest.raises(CheckpointError, match="one array without a name"):
        Golden.load(tmp_path / "golden.npy")


def test_a_directory_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="Is a directory"):
        Golden.load(tmp_path)


@pytest.mark.parametrize("text", ["{", "[" * 10**5])
def test_a_config_that_is_no_json_is_refused(tmp_path, text):
    np.savez(tmp_path / "golden.npz", config=np.array(text))
    with pytest.raises(CheckpointError, match=r"config in .* must be JSON text"):
        Golden.load(tmp_path / "golden.npz").json("config")
