"""k3 train: the recipe that it runs, and what it prints; the loop has its own tests."""

from pathlib import Path

import pytest
import torch

from k3.eval import PROTOCOLS, Figure, Result, card
from k3.train import pretrain, snapshot
from k3.train.recipe import SETTINGS


@pytest.fixture
def runs(monkeypatch):
    """Record what would be trained instead of training."""
    calls = []

    def run(recipe, out, **options):
        calls.append((recipe, out, options))
        return pretrain.Result(
            directory=str(out),
            steps=recipe.steps,
            tokens=recipe.steps * 2048,
            seconds=9.6,
            total_seconds=31.2,
            bits_per_byte=2.25,
            xz=2.5,
            xz_alone=2.75,
            kneser_ney=2.0,
        )

    def complete(directory, tasks):
        figure = Figure(name="right", count=50, value=0.5, low=0.4, high=0.6)
        result = Result(protocol=PROTOCOLS["recall"], figures=(figure,), records=())
        return [result] if "recall" in tasks else []

    monkeypatch.setattr(pretrain, "run", run)
    monkeypatch.setattr(card, "complete", complete)
    return calls


def test_settings_reach_the_recipe_and_the_card(k3, runs, tmp_path):
    values = ["--set", "steps=7", "--set", "learning_rate=0.001"]
    values += ["--set", "mixture=text:0.5,recall:0.5"]
    found = k3("train", "tiny", "--out", tmp_path / "run", *values)
    assert found.code == 0
    ((recipe, out, options),) = runs
    assert (recipe.steps, recipe.learning_rate) == (7, 0.001)
    assert out == str(tmp_path / "run")
    assert options["command"] == f"k3 train tiny --out {out} " + " ".join(values)
    assert "2.250 bits per byte" in found.out
    assert "recall, right: 0.500 of 50" in found.out
    assert f"k3 generate {out}" in found.out


def test_trackers_get_the_records(k3, runs):
    assert k3("train", "--track", "tensorboard", "--track", "trackio").code == 0
    assert runs[0][2]["trackers"] == ["tensorboard", "trackio"]


def test_a_tracker_that_does_not_exist_is_refused(k3, tmp_path):
    found = k3("train", "--track", "wand", "--out", tmp_path / "run")
    assert found.code == 2
    assert "a tracker is one of tensorboard, trackio: got 'wand'" in found.err


def test_json_is_the_result(k3, runs):
    mixture = "mixture=text:0.5,recall:0.5"
    found = k3("train", "--set", "steps=3", "--set", mixture, "--resume", "--json")
    assert found.json["steps"] == 3
    (task,) = found.json["tasks"]
    assert (task["task"], task["name"], task["value"]) == ("recall", "right", 0.5)
    assert runs[0][1] == "runs/tiny"
    assert runs[0][2]["resume"] is True
    assert runs[0][2]["quiet"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["large"], "RECIPE must be one of tiny, scaling: got 'large'"),
        (["--set", "stepz=3"], "no setting 'stepz'"),
        (["--set", "steps=few"], "steps must be of type int"),
        (["--set", "steps=0"], "steps must be at least 1"),
    ],
)
def test_what_cannot_be_trained_is_refused(k3, runs, arguments, message):
    found = k3("train", *arguments)
    assert found.code == 2
    assert message in found.err
    assert runs == []


def test_seconds_are_those_of_the_steps_and_of_all(k3, runs):
    assert "10 s of steps, 31 s in all" in k3("train", "--set", "steps=3").out


def test_the_help_lists_what_can_be_set(k3, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    assert ", ".join(SETTINGS) in k3("train", "--help").out


@pytest.fixture
def stopped(monkeypatch):
    """A run that is interrupted after some of its steps."""

    def stop(step, *files):
        def run(recipe, out, **_):
            out = Path(out)
            out.mkdir(parents=True)
            if step is not None:
                snapshot.write(out, {"x": torch.zeros(1)}, {"step": step})
            for file in files:
                (out / file).touch()
            raise KeyboardInterrupt

        monkeypatch.setattr(pretrain, "run", run)

    return stop


@pytest.mark.parametrize(
    ("step", "files", "message"),
    [
        (None, [], "no snapshot in {out} yet; empty the folder and start again"),
        (3, [], "snapshot of step 3 of 7; 4 steps and the scores are missing"),
        (
            7,
            ["model.safetensors.index.json"],
            "step 7 of 7 and the checkpoint, which k3 generate reads; the scores are",
        ),
    ],
)
def test_an_interruption_says_what_there_is(
    k3, stopped, tmp_path, step, files, message
):
    stopped(step, *files)
    out = tmp_path / "run"
    found = k3("train", "tiny", "--out", out, "--set", "steps=7")
    assert found.code == 130
    assert message.format(out=out) in found.err
    goes_on = f"k3 train tiny --out {out} --set steps=7 --resume"
    assert found.err.rstrip().endswith(goes_on) == (step is not None)
