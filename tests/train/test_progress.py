"""What a snapshot holds of a run comes back as it was."""

import json
import random

import pytest
import torch
import toy

from k3.errors import CheckpointError
from k3.train import pretrain, progress, snapshot
from k3.train.balance import Balance
from k3.train.masters import Masters
from k3.train.progress import Progress
from k3.train.spikes import Recent


@pytest.fixture
def held():
    model = pretrain.fresh(toy.recipe())
    return Masters(model, betas=(0.9, 0.95), weight_decay=0.1), Balance(model)


def test_facts_are_json_and_exact():
    recent = Recent([1 / 3, 2.0], [0.1])
    at = Progress(step=4, rows=9, smooth=2 / 3, domains={"text": [1 / 7, 3.0]})
    at.recent = recent
    told = json.loads(json.dumps(progress.facts(at)))
    back = Progress.of(told)
    assert progress.facts(back) == progress.facts(at)
    assert back.smooth == 2 / 3
    assert back.recent.losses == recent.losses
    assert back.recent.losses is not recent.losses


def test_random_numbers_go_on_where_they_were(held, tmp_path):
    torch.manual_seed(1)
    random.seed(1)
    tensors, facts = progress.tensors(*held), progress.facts(Progress(step=2))
    snapshot.write(tmp_path, tensors, facts)
    wanted = torch.rand(3).tolist()
    torch.manual_seed(7)
    random.seed(7)
    assert progress.restore(*held, tmp_path, seed=5).step == 2
    version, numbers, gauss = random.getstate()
    assert [version, list(numbers), gauss] == facts["random"]
    assert torch.rand(3).tolist() == wanted


def test_a_run_begins_with_its_seed(held, tmp_path):
    snapshot.write(tmp_path, {}, progress.facts(Progress()))
    found = []
    for seed in (5, 5, 6):
        progress.restore(*held, tmp_path, seed)
        found.append((float(torch.rand(())), random.random()))
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("key", ["rows", "losses", "random"])
def test_facts_that_are_missing_are_refused(held, tmp_path, key):
    facts = progress.facts(Progress(step=2))
    del facts[key]
    snapshot.write(tmp_path, progress.tensors(*held), facts)
    with pytest.raises(CheckpointError, match=rf"whole snapshot: got .*2\..*{key}"):
        progress.restore(*held, tmp_path, 0)
