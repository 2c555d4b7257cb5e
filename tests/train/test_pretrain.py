"""From text to files: reproducible, resumable, judged on what was written."""

import dataclasses
import json
import re

import pytest
import torch

from k3.checkpoint import load
from k3.errors import CheckpointError, RequestError
from k3.train import pretrain, report, snapshot
from k3.train.trainer import Trainer

FILES = {
    "README.md",
    "config.json",
    "curves",
    "generation_config.json",
    "metrics.jsonl",
    "model.safetensors.index.json",
    "model-00001-of-000001.safetensors",
    "tiktoken.model",
    "tokenizer_config.json",
    "training-00000000.safetensors",
    "training-00000006.safetensors",
}


@pytest.fixture
def unjudged(monkeypatch):
    """Leave out the scores, which take most of a short run."""
    result = pretrain.Result(
        directory="",
        steps=0,
        tokens=0,
        seconds=0.0,
        bits_per_byte=0.0,
        xz=0.0,
        xz_alone=0.0,
        kneser_ney=0.0,
    )
    monkeypatch.setattr(pretrain, "judge", lambda *args, **options: result)


def weights(directory):
    return (directory / "model-00001-of-000001.safetensors").read_bytes()


def test_files_result_and_card(small, text, tmp_path):
    out = tmp_path / "run"
    result = pretrain.run(small, out, quiet=True, command="k3 train small")
    assert {path.name for path in out.iterdir()} == FILES
    assert (result.steps, result.tokens) == (6, 6 * 2 * 33)
    assert 0 < result.bits_per_byte < 10
    card = (out / "README.md").read_text()
    for part in (
        f"**{result.bits_per_byte:.4f}**",
        f"{result.xz:.4f}",
        f"{result.xz_alone:.4f}",
        f"{result.kneser_ney:.4f}",
        text.sha256,
        "Python 3.11.0",
        "PSF-2.0",
        "`k3 train small`",
    ):
        assert part in card
    values = json.loads((out / "generation_config.json").read_text())
    assert values["eos_token_id"] == small.config.eos_token_id


def test_what_is_saved_is_what_was_trained(
    small, text, tmp_path, monkeypatch, unjudged
):
    trained = []
    package = pretrain.package

    def watch(model, directory):
        trained.append(model)
        package(model, directory)

    monkeypatch.setattr(pretrain, "package", watch)
    pretrain.run(small, tmp_path / "run", quiet=True)
    loaded = load.load(tmp_path / "run", dtype=torch.float32, experts="dequantized")
    ids = torch.randint(0, 300, (1, 40), generator=torch.manual_seed(0))
    with torch.no_grad():
        assert torch.equal(loaded(ids), trained[0](ids))


def test_a_seed_gives_the_same_files_and_another_does_not(
    small, text, tmp_path, unjudged
):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        recipe = dataclasses.replace(small, seed=seed, steps=2)
        pretrain.run(recipe, tmp_path / name, quiet=True)
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    assert weights(tmp_path / "a") != weights(tmp_path / "c")


def test_an_interrupted_run_resumes_to_the_same_weights(
    small, text, tmp_path, monkeypatch, unjudged
):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    pretrain.run(small, whole, quiet=True)
    step = Trainer.step

    def stop(trainer, at):
        if at.step == 3:
            raise KeyboardInterrupt
        return step(trainer, at)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", stop)
        with pytest.raises(KeyboardInterrupt):
            pretrain.run(small, cut, quiet=True)
    assert snapshot.read(cut)[1]["step"] == 3
    pretrain.run(small, cut, resume=True, quiet=True)
    assert weights(whole) == weights(cut)
    steps = [
        json.loads(line)["step"]
        for line in (cut / report.FILE_NAME).read_text().splitlines()
    ]
    assert steps == [2, 4, 6]


def test_every_stage_says_its_name_and_its_seconds(small, text, tmp_path, capfd):
    recipe = dataclasses.replace(small, steps=1)
    result = pretrain.run(recipe, tmp_path / "run")
    err = capfd.readouterr().err
    stages = ["reading text", "training the tokenizer", "encoding text"]
    for stage in [*stages, "scoring held-out text", "baselines: xz, Kneser-Ney"]:
        assert re.search(rf"^{stage} \.\.\. \d+\.\d s$", err, re.M), stage
    assert result.total_seconds > result.seconds


def test_resuming_a_finished_run_judges_it_again(small, text, tmp_path):
    recipe = dataclasses.replace(small, steps=2)
    first = pretrain.run(recipe, tmp_path, quiet=True)
    again = pretrain.run(recipe, tmp_path, quiet=True, resume=True)
    assert again == first


def test_a_folder_with_files_is_refused(small, text, tmp_path):
    (tmp_path / "x").touch()
    with pytest.raises(RequestError, match="starts in an empty directory: got"):
        pretrain.run(small, tmp_path)


def test_another_recipe_cannot_resume(small, text, tmp_path, unjudged):
    pretrain.run(dataclasses.replace(small, steps=1), tmp_path, quiet=True)
    other = dataclasses.replace(small, seed=3, learning_rate=1.0)
    with pytest.raises(CheckpointError) as caught:
        pretrain.run(other, tmp_path, resume=True)
    message = str(caught.value)
    assert "learning_rate was 0.0025 and is 1.0" in message
    assert "seed was 0 and is 3" in message
    assert "steps was" not in message


def test_another_corpus_cannot_resume(small, text, tmp_path, monkeypatch, unjudged):
    recipe = dataclasses.replace(small, steps=1)
    pretrain.run(recipe, tmp_path, quiet=True)
    moved = dataclasses.replace(text, train=text.train[1:])
    monkeypatch.setattr(pretrain.corpora, "stdlib", lambda: moved)
    with pytest.raises(CheckpointError, match="corpus has another hash"):
        pretrain.run(recipe, tmp_path, resume=True)


def test_a_directory_is_refused_before_the_text_is_read(small, tmp_path, monkeypatch):
    def never():
        raise AssertionError("the text was read")

    monkeypatch.setattr(pretrain.corpora, "stdlib", never)
    (tmp_path / "x").touch()
    for out in (tmp_path, tmp_path / "x", tmp_path / "x" / "y"):
        with pytest.raises(RequestError, match=r"a run .* directory"):
            pretrain.run(small, out, quiet=True)
    with pytest.raises(CheckpointError, match="resuming needs"):
        pretrain.run(small, tmp_path, resume=True, quiet=True)


@pytest.mark.parametrize("stage", ["_tokenizer", "fresh"])
def test_a_run_cut_before_its_first_step_resumes(
    small, text, tmp_path, monkeypatch, unjudged, stage
):
    """A kill leaves what is there: the files at the moment of the stage."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    pretrain.run(small, whole, quiet=True)

    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pretrain, stage, kill)
        with pytest.raises(KeyboardInterrupt):
            pretrain.run(small, cut, quiet=True)
    (cut / "tiktoken.model").write_bytes(b"half")
    pretrain.run(small, cut, resume=True, quiet=True)
    assert weights(whole) == weights(cut)


def test_a_run_killed_while_it_writes_its_first_snapshot_starts_again(
    small, text, tmp_path, unjudged
):
    (tmp_path / snapshot.WRITING).write_bytes(b"half")
    pretrain.run(dataclasses.replace(small, steps=1), tmp_path, quiet=True)
    assert {path.name for path in tmp_path.iterdir()} == {
        name.replace("00000006", "00000001") for name in FILES
    }


@pytest.mark.parametrize("facts", [{"step": "3", "recipe": {}}, {"step": 3}])
def test_a_snapshot_that_names_no_run_is_refused(small, text, tmp_path, facts):
    snapshot.write(tmp_path, {}, facts)
    with pytest.raises(CheckpointError, match=r"whole snapshot: got .*names no run"):
        pretrain.run(small, tmp_path, resume=True, quiet=True)
