"""Trackers get every number of a record, and are refused where they are not there."""

import sys
import types

import pytest

from k3.errors import RequestError
from k3.train import report, track

RECORD = {
    "step": 4,
    "steps": 9,
    "loss": 2.5,
    "gradient_norm": None,
    "losses": {"text": 2.0, "digits": 3.0},
}
NUMBERS = {"loss": 2.5, "losses/text": 2.0, "losses/digits": 3.0}


@pytest.fixture
def found(monkeypatch):
    monkeypatch.setattr(track, "find_spec", lambda name: object())


def test_numbers_of_a_record():
    assert track.numbers(RECORD) == NUMBERS
    assert track.numbers({"step": 1, "steps": 2, "skipped": "spike"}) == {}


@pytest.mark.parametrize("name", track.TRACKERS)
def test_a_tracker_that_is_not_installed_is_refused(monkeypatch, name):
    monkeypatch.setattr(track, "find_spec", lambda name: None)
    with pytest.raises(RequestError, match=rf"with {name} .*pip install 'k3\[track\]'"):
        track.check([name])


def test_a_tracker_that_does_not_exist_is_refused(found):
    with pytest.raises(RequestError, match="one of tensorboard, trackio: got 'wand'"):
        track.check(["wand"])


def test_tensorboard_has_a_scalar_for_each_number(small, tmp_path, found, monkeypatch):
    told, closed = [], []

    class SummaryWriter:
        def __init__(self, folder):
            self.folder = folder

        def __enter__(self):
            return self

        def __exit__(self, *_):
            closed.append(self.folder)

        def add_scalar(self, name, value, step):
            told.append((name, value, step))

    module = types.ModuleType("tensorboard")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    with track.opened(["tensorboard"], small, tmp_path) as (tell,):
        tell(RECORD)
    assert told == [(name, value, 4) for name, value in NUMBERS.items()]
    assert closed == [str(tmp_path / "tensorboard")]


def test_trackio_has_a_run_of_the_folders_name(small, tmp_path, found, monkeypatch):
    told = []
    module = types.ModuleType("trackio")
    module.init = lambda **given: told.append(given)
    module.log = lambda numbers, step: told.append((numbers, step))
    module.finish = lambda: told.append("finished")
    monkeypatch.setitem(sys.modules, "trackio", module)
    with (
        track.opened(["trackio"], small, tmp_path / "first") as also,
        report.reporter(tmp_path, quiet=True, also=also) as tell,
    ):
        tell(RECORD)
    assert told[0]["name"] == "first"
    assert told[0]["config"]["steps"] == 6
    assert told[1:] == [(NUMBERS, 4), "finished"]
