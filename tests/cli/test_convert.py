"""k3 convert: pack, unpack, reshard, and say so before."""

import pytest

from k3.cli import convert
from k3.cli.convert import parse_size
from k3.errors import RequestError


def test_unpacked_experts_compute_the_same(k3, golden, tmp_path):
    assert k3("convert", golden, tmp_path / "dense", "--experts", "dense").code == 0
    found = k3("compare", tmp_path / "dense", f"{golden}/golden.npz")
    assert found.code == 0


def test_a_dry_run_writes_nothing(k3, golden, tmp_path):
    arguments = ["--max-shard", "300kB", "--dry-run", "--json"]
    found = k3("convert", golden, tmp_path / "new", *arguments)
    assert found.json["written"] is False
    assert len(found.json["shards"]) > 3
    assert not (tmp_path / "new").exists()
    assert "nothing written" in k3("convert", golden, tmp_path / "x", "--dry-run").out


def test_what_is_there_is_not_written_over(k3, golden, tmp_path):
    (tmp_path / "mine").write_text("mine")
    found = k3("convert", golden, tmp_path)
    assert found.code == 2
    assert "is not empty" in found.err


@pytest.mark.parametrize(
    ("text", "size"), [("300", 300), ("1.5kB", 1500), ("5 GB", 5 * 10**9)]
)
def test_sizes_are_decimal(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "5", "0", "-1GB", "5TB", "GB"][2:])
def test_sizes_that_are_none_are_refused(text):
    with pytest.raises(RequestError, match="--max-shard must be a size"):
        parse_size(text)


def test_dequantized_is_another_word_for_dense(k3, golden, tmp_path):
    arguments = ["--experts", "dequantized", "--dry-run", "--json"]
    found = k3("convert", golden, tmp_path / "new", *arguments)
    assert found.json["experts"]["to"] == "dense"


def test_a_word_that_convert_has_not_is_refused_with_its_own(k3, golden, tmp_path):
    found = k3("convert", golden, tmp_path / "new", "--experts", "mmap")
    assert found.code == 2
    assert "must be one of packed, dense, dequantized, keep: got 'mmap'" in found.err


def test_a_small_conversion_says_what_it_did_and_no_more(k3, golden, tmp_path):
    found = k3("convert", golden, tmp_path / "new")
    assert found.err == ""
    assert "experts stay packed" in found.out
    assert found.out.splitlines()[-1] == f"written: {tmp_path / 'new'}"


def test_a_large_one_says_how_far_it_is():
    seen = []
    progress = convert.only_large(lambda done, total: seen.append((done, total)))
    progress(1, convert.QUIET_BYTES - 1)
    progress(1, convert.QUIET_BYTES)
    assert seen == [(1, convert.QUIET_BYTES)]


def test_one_is_no_plural():
    found = [convert.counted(n, "matrix", "matrices") for n in (0, 1, 1200)]
    assert found == ["0 matrices", "1 matrix", "1,200 matrices"]
    assert convert.counted(2, "tensor") == "2 tensors"


def test_an_absurd_size_of_shards_is_refused(k3, tmp_path):
    found = k3("convert", "tiny", tmp_path / "x", "--max-shard", "9" * 400 + "GB")
    assert found.code == 2
    assert "--max-shard must be a size such as 500MB" in found.err
    assert len(found.err) < 200
