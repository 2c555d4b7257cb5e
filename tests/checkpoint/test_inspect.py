"""`inspect`: verdicts and sizes from headers alone."""

import json
import shutil
from pathlib import Path

import pytest

from k3 import recipes
from k3.checkpoint.inspect import inspect
from k3.checkpoint.report import Report, size
from k3.errors import RequestError

TINY = Path(__file__).parents[1] / "golden" / "tiny_release"
SHARDS = [f"model-0000{i}-of-000003.safetensors" for i in (1, 2, 3)]
A_LOG = "language_model.model.layers.0.self_attn.A_log"
NORM = "language_model.model.norm.weight"


@pytest.fixture
def tiny(tmp_path):
    for name in ("config.json", "model.safetensors.index.json", *SHARDS):
        shutil.copyfile(TINY / name, tmp_path / name)
    return tmp_path


def edit_header(folder: Path, tensor: str, change) -> None:
    """Change the entry of one tensor in the header of its shard."""
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    file = folder / index["weight_map"][tensor]
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header = change(header)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])


def reshaped(tensor: str, **fields):
    def change(header: dict) -> dict:
        return {**header, tensor: {**header[tensor], **fields}}

    return change


def edit_config(folder: Path, **fields) -> None:
    file = folder / "config.json"
    data = json.loads(file.read_text())
    data["text_config"] |= fields
    file.write_text(json.dumps(data))


def problems(folder: Path) -> str:
    report = inspect(folder)
    assert not report.ok
    assert report.tensors.present
    return "\n".join(report.tensors.problems)


def test_the_golden_checkpoint_is_good():
    report = inspect(TINY, context_tokens=1000)
    assert report.ok
    assert report.notes == ()
    assert (report.tensors.count, report.tensors.files) == (604, 3)
    assert report.tensors.experts == "packed"
    index = json.loads((TINY / "model.safetensors.index.json").read_text())
    assert report.tensors.nbytes == index["metadata"]["total_size"]
    assert report.memory.sequence_bytes == 32_800 + 96_000
    text = "\n".join(report.lines())
    assert "tensors     ok: 604 tensors in 3 files" in text
    assert "96 B per token (24 scalars in each MLA layer; 84 if expanded)" in text
    assert "128,800 B for one sequence of 1,000 tokens" in text


def test_the_config_file_may_be_named():
    assert inspect(TINY / "config.json").tensors == inspect(TINY).tensors


def test_a_config_alone(tmp_path):
    recipes.paper().save(tmp_path)
    report = inspect(tmp_path, context_tokens=1 << 20)
    assert report.ok
    assert not report.tensors.present
    text = "\n".join(report.lines())
    assert "no weights here; the layout asks for 502,620 tensors, 1.58 TB" in text
    assert "2,779,931,837,184 in the released layout, 2,208 of them" in text
    assert "104,189,614,848 active for a text token" in text
    assert "mtp, apart" in text
    assert "29.44 GB for one sequence of 1,048,576 tokens" in text


def test_a_recipe():
    report = inspect(recipes.released(), context_tokens=0, name="released")
    assert report.model == "released"
    assert report.tensors.expected_count == 497_220
    assert report.tensors.expected_bytes == 1_560_860_324_864
    assert report.memory.sequence_bytes == report.memory.fixed_bytes == 449_372_160
    assert "mtp" not in "\n".join(report.lines())
    assert report.lines()[0].startswith("released: 93 layers (69 KDA, 24 MLA)")


def test_json_values():
    report = inspect(TINY, context_tokens=10)
    values = json.loads(json.dumps(report.to_dict()))
    assert values["ok"] is True
    assert values["tensors"]["problems"] == []
    assert values["memory"]["sequence_bytes"] == 32_800 + 960
    assert values["parameters"]["components"]["lm_head"] == 10_240
    assert json.dumps(Report(model="x", config_problems=("y",)).to_dict())


def test_wrong_config_is_a_verdict(tiny):
    edit_config(tiny, hidden_act="silu", num_experts_per_token=12)
    report = inspect(tiny)
    assert not report.ok
    assert report.tensors is report.parameters is report.memory is None
    assert report.config_problems == (
        "text_config.hidden_act: got 'silu', expected 'situ'",
        "text_config.num_experts_per_token: got 12, expected at most num_experts",
    )
    assert "config      2 wrong" in report.lines()


def test_no_config_is_a_verdict(tmp_path):
    report = inspect(tmp_path)
    assert not report.ok
    assert "no configuration at" in report.config_problems[0]


def test_unknown_fields_are_a_note(tiny):
    edit_config(tiny, surprise=1)
    report = inspect(tiny)
    assert report.ok
    assert "text_config.surprise" in report.notes[0]
    assert any("  note: config.json has fields" in line for line in report.lines())


def test_missing_and_unexpected(tiny):
    def rename(header):
        return {("odd" if k == NORM else k): v for k, v in header.items()}

    edit_header(tiny, NORM, rename)
    text = problems(tiny)
    assert f"{NORM} is in the index but not in" in text
    assert "odd is unexpected" in text


def test_wrong_shape_and_dtype(tiny):
    edit_header(tiny, NORM, reshaped(NORM, shape=[4, 10]))
    assert f"{NORM} has shape (4, 10): expected (40,)" in problems(tiny)
    edit_header(tiny, NORM, reshaped(NORM, shape=[40], dtype="F16"))
    assert f"{NORM} has dtype F16: expected BF16" in problems(tiny)


def test_report_50_other_a_log_lengths_are_refused(tiny):
    assert inspect(tiny).ok
    edit_header(tiny, A_LOG, reshaped(A_LOG, shape=[2, 4]))
    assert f"{A_LOG} has shape (2, 4): expected a length of" in problems(tiny)


def test_truncated_file(tiny):
    file = tiny / SHARDS[1]
    file.write_bytes(file.read_bytes()[:-100])
    assert "the file is cut off" in problems(tiny)
    assert SHARDS[1] in problems(tiny)


def test_garbled_header(tiny):
    (tiny / SHARDS[1]).write_bytes((8).to_bytes(8, "little") + b"nonsense")
    assert "garbled" in problems(tiny)


def test_absent_shard(tiny):
    (tiny / SHARDS[2]).unlink()
    assert f"{SHARDS[2]} is absent" in problems(tiny)


def test_an_index_alone_is_not_nothing(tiny):
    for shard in SHARDS:
        (tiny / shard).unlink()
    text = problems(tiny)
    assert all(f"{shard} is absent" in text for shard in SHARDS)


def test_unreadable_index(tiny):
    (tiny / "model.safetensors.index.json").write_text("{")
    assert "is not an index with a weight_map" in problems(tiny)


def test_all_problems_at_once(tiny):
    edit_header(tiny, NORM, reshaped(NORM, shape=[4, 10]))
    edit_header(tiny, A_LOG, reshaped(A_LOG, shape=[2, 4]))
    text = problems(tiny)
    assert NORM in text
    assert A_LOG in text


def test_experts_stored_otherwise_than_announced(tiny):
    edit_config(tiny, quantization_config=None)
    report = inspect(tiny)
    assert report.ok
    assert "stored packed and quantization_config says dense" in report.notes[0]


def test_long_lists_are_cut_in_text_only():
    tensors = inspect(TINY).tensors
    wrong = tuple(f"tensor {i}" for i in range(25))
    report = Report(model="x", config_problems=wrong, tensors=tensors)
    assert "  ... and 5 more: --json lists all" in report.lines()
    assert len(report.to_dict()["config_problems"]) == 25


def test_negative_context_is_refused():
    with pytest.raises(RequestError, match="at least 0: got -1"):
        inspect(TINY, context_tokens=-1)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (999_999, "999,999 B"),
        (1_000_000, "1.00 MB"),
        (10**18, "1000.00 PB"),
    ],
)
def test_size(nbytes, text):
    assert size(nbytes) == text
