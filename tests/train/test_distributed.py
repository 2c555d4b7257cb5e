"""Many ranks train what one process trains: losses, weights, snapshots."""

import subprocess
import sys
from pathlib import Path

import pytest

from k3.parallel import Mesh
from k3.train import snapshot

sys.path.insert(0, str(Path(__file__).parent))
import train_on_ranks

KEYS = ("loss", "gradient_norm", "mtp_loss", "expert_max_over_mean", "tokens", "losses")


WEAK = 1e-7
"""A gradient's root mean square that is near AdamW's eps, 1e-8: its step is noise."""


def agree(told, held, want, bound=1e-5, moved=1e-5):
    """Every rank's records, and the weights of the snapshot that all have written.

    AdamW divides by the gradient's size: where that is WEAK the order of a sum shows.
    There a weight may differ by 5e-5, and hardly any is there.
    """
    records, weights = want
    for rank in told:
        assert len(rank) == len(records)
        for got, right in zip(rank, records, strict=True):
            for key in KEYS:
                assert got.get(key) == pytest.approx(right.get(key), abs=bound), key
    assert set(held) == set(weights)
    for name, x in weights.items():
        if name.startswith(("weight.", "bias.")):
            gap = (held[name] - x).abs()
            square = weights.get("exp_avg_sq." + name.partition(".")[2])
            if square is not None:
                weak = (square.sqrt() < WEAK) & (gap >= moved)
                assert int(weak.sum()) <= 1
                assert not bool((gap[weak] >= 5e-5).any())
                gap = gap[~weak]
            assert float(gap.max()) < moved, name


def run(group, mesh, folder, **values):
    folder.mkdir(exist_ok=True)
    told = group(mesh, train_on_ranks.team, str(folder), values)
    return told, snapshot.read(folder)[0]


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("optimizer", "axis"),
    [
        ("muon", "data"),
        slow("adamw", "data"),
        slow("muon", "pipeline"),
        slow("adamw", "pipeline"),
        slow("muon", "expert"),
        slow("muon", "context"),
    ],
)
def test_two_ranks_train_as_one_process(two, tmp_path, optimizer, axis):
    want = train_on_ranks.alone(tmp_path / "one", optimizer=optimizer)
    got = run(two, Mesh(**{axis: 2}), tmp_path / "two", optimizer=optimizer)
    agree(*got, want)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("optimizer", "mesh"),
    [
        ("adamw", "data=4"),
        ("muon", "pipeline=2,data=2"),
        ("adamw", "expert=4"),
        ("adamw", "expert=2,context=2"),
    ],
)
def test_four_ranks_train_as_one_process(four, tmp_path, optimizer, mesh):
    want = train_on_ranks.alone(tmp_path / "one", optimizer=optimizer)
    got = run(four, Mesh.of(mesh), tmp_path / "four", optimizer=optimizer)
    agree(*got, want)


@pytest.mark.slow
def test_any_number_of_ranks_goes_on_from_any_snapshot(two, tmp_path):
    """Two steps alone, one in shards, one in stages, the last alone again."""
    want = train_on_ranks.alone(tmp_path / "one")
    folder = tmp_path / "changing"
    records = list(train_on_ranks.alone(folder, until=2)[0])
    for until, mesh in ((3, Mesh(data=2)), (4, Mesh(pipeline=2))):
        records += run(two, mesh, folder, until=until)[0][0]
    told, held = train_on_ranks.alone(folder)
    agree([records + told], held, want)


@pytest.mark.slow
def test_torchrun_trains_and_packages(tmp_path):
    done = torchrun(tmp_path / "run", "parallel=data=2")
    assert done.returncode == 0, done.stderr
    written = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"training-00000002.dcp", "config.json", "README.md"} <= written
    assert len((tmp_path / "run/metrics.jsonl").read_text().splitlines()) == 1


@pytest.mark.slow
def test_one_rank_that_fails_ends_all_with_its_sentence(tmp_path):
    done = torchrun(tmp_path / "run", "parallel=data=2", "fail=1")
    assert done.returncode != 0
    assert done.stderr.count("k3: this row cannot be read; choose another one") == 1
    assert "gloo" not in done.stderr


def torchrun(*arguments):
    """Run the toy recipe on two processes of this machine."""
    program = Path(sys.executable).with_name("torchrun")
    script = Path(__file__).with_name("torchrun_toy.py")
    words = [program, "--standalone", "--nproc-per-node", "2", script, *arguments]
    return subprocess.run(
        list(map(str, words)), capture_output=True, text=True, check=False, timeout=900
    )
