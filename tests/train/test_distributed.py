"""Many ranks train what one process trains: losses, weights, snapshots."""

import sys
from pathlib import Path

import pytest

from k3.parallel import Mesh
from k3.train import snapshot

sys.path.insert(0, str(Path(__file__).parent))
import train_on_ranks

KEYS = ("loss", "gradient_norm", "mtp_loss", "expert_max_over_mean", "tokens", "losses")


def agree(told, held, want, bound=1e-5):
    """Every rank's records, and the weights of the snapshot that all have written."""
    records, weights = want
    for rank in told:
        assert len(rank) == len(records)
        for got, right in zip(rank, records, strict=True):
            for key in KEYS:
                assert got.get(key) == pytest.approx(right.get(key), abs=bound), key
    assert set(held) == set(weights)
    for name, x in weights.items():
        if name.startswith(("weight.", "bias.")):
            assert float((held[name] - x).abs().max()) < bound, name


def run(group, mesh, folder, **values):
    folder.mkdir(exist_ok=True)
    told = group(mesh, train_on_ranks.team, str(folder), values)
    return told, snapshot.read(folder)[0]


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
@pytest.mark.parametrize("axis", ["data", "pipeline"])
def test_two_ranks_train_as_one_process(two, tmp_path, optimizer, axis):
    want = train_on_ranks.alone(tmp_path / "one", optimizer=optimizer)
    got = run(two, Mesh(**{axis: 2}), tmp_path / "two", optimizer=optimizer)
    agree(*got, want)
