"""k3 bench: figures beside floors, saved runs, and what is refused."""

import json
import shutil

import pytest

from k3.kernels import choose

SMALL = ("--tokens", 24, "--context", 9, "--steps", 2, "--rounds", 1, "--threads", 1)


@pytest.fixture(scope="module")
def saved(checkpoint, tmp_path_factory):
    """A run of the smallest kind, in a file."""
    from k3.cli import main

    path = tmp_path_factory.mktemp("bench") / "run.json"
    words = ["bench", checkpoint, *map(str, SMALL), "--no-memory", "--save", str(path)]
    assert main(words) == 0
    return path


def changed(saved, tmp_path, **settings):
    """The saved run with other settings, or with every speed times `speed`."""
    value = json.loads(saved.read_text())
    speed = settings.pop("speed", 1.0)
    value["settings"] |= settings
    for row in value["figures"]:
        row["median"] *= speed if row["unit"] == "tok/s" else 1 / speed
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(value))
    return path


def test_every_figure_has_its_floor(k3, checkpoint):
    found = k3("bench", checkpoint, *SMALL, "--batch", "1,3", "--json").json
    names = [row["name"] for row in found["figures"]]
    assert names == [
        "prefill of 24",
        "first token of 24",
        "decode of 1 after 9",
        "decode of 3 after 9",
        "memory loaded",
        "memory at work",
        "private loaded",
        "private at work",
    ]
    for row in found["figures"]:
        assert row["low"] <= row["median"] <= row["high"]
        assert 0 < row["share"] < 1.5
    assert found["context"]["kernels"].startswith(("native", "torch"))
    assert found["settings"]["threads"] == 1


def test_a_reader_sees_kernels_limits_and_shares(k3, checkpoint):
    found = k3("bench", checkpoint, *SMALL, "--batch", 1, "--no-memory")
    assert found.code == 0
    first, second, third, *rows = found.out.splitlines()
    form = ", weights as stored" if choose.ready() else ""
    assert f"float32{form}, packed experts, 1 thread(s)" in first
    assert first.endswith("kernels")
    assert "GB/s" in second
    assert third.split() == ["median", "low", "high", "floor", "share"]
    assert [row.split()[-1] for row in rows] == ["tok/s", "ms", "tok/s"]


def test_widened_weights_are_timed_where_they_are_asked_for(k3, checkpoint):
    words = ("bench", checkpoint, *SMALL, "--batch", 1, "--no-memory", "--json")
    stored, widened = (k3(*words, "--weights", w).json for w in ("stored", "widened"))
    assert stored["settings"]["weights"] == "stored"
    assert "weights" not in widened["settings"]
    assert stored["context"]["active_bytes"] < 0.7 * widened["context"]["active_bytes"]
    found = k3(*words, "--weights", "narrow")
    assert found.code == 2
    assert "--weights must be one of auto, stored, widened" in found.json["error"]


@pytest.mark.parametrize(("speed", "code"), [(1e-3, 0), (1e3, 1)])
def test_a_run_slower_than_the_factor_ends_with_1(
    k3, checkpoint, saved, tmp_path, speed, code
):
    before = changed(saved, tmp_path, speed=speed)
    words = ("bench", checkpoint, *SMALL, "--no-memory", "--against", before)
    found = k3(*words, "--json")
    assert found.code == code
    assert found.json["against"]["ok"] is (code == 0)
    assert len(found.json["against"]["slower"]) == (4 if code else 0)


def test_the_saved_ratio_stands_beside_each_figure(k3, checkpoint, saved, tmp_path):
    before = changed(saved, tmp_path, speed=1e3)
    words = ("bench", checkpoint, *SMALL, "--no-memory", "--against", before)
    found = k3(*words)
    assert found.code == 1
    assert found.out.count("times: SLOWER") == 4


def test_a_file_that_is_no_run_is_refused_at_once(k3, tmp_path):
    path = tmp_path / "other.json"
    path.write_text('{"figures": []}')
    found = k3("bench", "tiny", "--against", path)
    assert found.code == 2
    assert "a saved run is a file that k3 bench --save wrote" in found.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--batch", "1,x"), "--batch needs whole numbers with commas"),
        (("--batch", "0"), "1 or more of each of its counts: got batch 0"),
        (("--steps", "0"), "1 or more of each of its counts: got steps 0"),
        (("--threads", "0"), "1 or more of each of its counts: got threads 0"),
        (("--tokens", "9M", "--no-memory"), "must fit max_position_embeddings"),
        (("--clock", "sun"), "a clock is one of wall, cpu: got sun"),
        (("--clock", "cpu", "--threads", "2"), "adds the time of all threads"),
        (("--factor", "2"), "--factor belongs to --against"),
        (("--dtype", "int8"), "--dtype must be one of"),
    ],
)
def test_what_means_nothing_is_refused(k3, checkpoint, words, sentence):
    found = k3("bench", checkpoint, *words)
    assert found.code == 2
    assert sentence in found.err


def test_a_factor_below_1_is_refused(k3, saved):
    found = k3("bench", "tiny", "--against", saved, "--factor", 0.5)
    assert found.code == 2
    assert "--factor is how many times slower is allowed: got 0.5" in found.err


def test_a_damaged_checkpoint_is_refused_in_a_sentence(k3, checkpoint, tmp_path):
    shutil.copytree(checkpoint, tmp_path / "model")
    file = next((tmp_path / "model").glob("*.safetensors"))
    with file.open("r+b") as stream:
        stream.truncate(20_000)
    found = k3("bench", tmp_path / "model", *SMALL)
    assert found.code == 2
    assert "cut off" in found.err
    assert "Traceback" not in found.err
