"""A whole run in a folder: what it leaves, how it goes on, what it refuses."""

import json

import pytest

import k3
from k3.errors import CheckpointError, RequestError
from k3.post import recipes, run, served
from k3.post.judge import ProgramJudge
from k3.post.rubric import Line, Rubric
from k3.post.tournament import Tournament, TournamentOptions

SMALL = {
    "tasks": "calculator",
    "thinking": False,
    "iterations": 1,
    "prompts": 1,
    "samples": 2,
    "max_tokens": 12,
    "heldout": 2,
    "workers": 1,
}


@pytest.fixture(scope="module")
def recipe():
    return recipes.named("agentic-low").set(SMALL)


@pytest.fixture(scope="module")
def done(recipe, tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    return run.run(recipe, "tiny", directory, quiet=True), directory


def test_it_leaves_a_checkpoint_records_samples_and_curves(done, recipe):
    result, directory = done
    assert (result.iteration, result.directory) == (1, str(directory))
    assert result.before["calculator"]["count"] == 2
    assert result.after["calculator"]["rate"] == 0.0
    assert result.sampled_tokens == 24
    k3.load(str(directory))
    k3.tokenizer(str(directory))
    (record,) = map(json.loads, (directory / "metrics.jsonl").read_text().splitlines())
    assert (record["step"], record["tokens"]) == (1, 12.0)
    # The budget is half of what nobody was allowed to write more of.
    assert record["reward"] == 0.0
    lines = (directory / "trajectories.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["finished"] * 2 + [
        "learned"
    ]
    names = {path.name for path in (directory / "curves").iterdir()}
    assert names == {"reward.svg", "success.svg", "tokens.svg"}


def test_it_goes_on_with_more_iterations(done, recipe):
    before, directory = done
    longer = recipe.set({"iterations": 2, "heldout": 0})
    result = run.run(longer, "tiny", directory, resume=True, quiet=True)
    assert (result.iteration, result.before, result.after) == (2, before.before, {})


def test_another_recipe_or_model_is_refused(done, recipe):
    directory = done[1]
    other = recipe.set({"seed": 3, "samples": 4})
    with pytest.raises(CheckpointError, match="other seed, samples; give what"):
        run.run(other, "tiny", directory, resume=True, quiet=True)
    with pytest.raises(CheckpointError, match="other base; give what it began with"):
        run.run(recipe, str(directory), directory, resume=True, quiet=True)
    with pytest.raises(RequestError, match="starts in an empty directory"):
        run.run(recipe, "tiny", directory, quiet=True)


def test_weights_are_written_and_pushed(tmp_path):
    model, tokenizer = k3.load("tiny"), k3.tokenizer("tiny")
    told = tmp_path / "told"
    command = f"sh -c 'echo {{version}} {{folder}} >> {told}'"
    for version in (1, 2, 3):
        served.pushed(model, tokenizer, tmp_path / "p", version, command)
    last = told.read_text().split()[-1]
    assert last == str(tmp_path / "p" / "00000003")
    assert k3.load(last).config == model.config
    assert [p.name for p in sorted((tmp_path / "p").iterdir())] == [
        "00000002",
        "00000003",
    ]
    with pytest.raises(RequestError, match="must take version 4: got 3 from sh"):
        served.pushed(model, tokenizer, tmp_path / "p", 4, "sh -c 'exit 3' {folder}")


def test_a_command_without_a_folder_is_refused(tmp_path, recipe):
    asked = "http://127.0.0.1:1", "reload", tmp_path, recipe, k3.tokenizer("tiny")
    with pytest.raises(RequestError, match="got 'reload'; name the command"):
        served.opened(*asked)


def test_judged_samples_meet_in_a_tournament(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "BASELINE", 2)
    asked = []

    def score(task, text):
        asked.append(task)
        return {"long": float(len(text))}

    rubric = Rubric(lines=(Line(name="long", text="It says more."),))
    options = TournamentOptions(factor=9.0)
    judged = {"calculator": Tournament(ProgramJudge(score), rubric, options)}
    free = recipe.set({"budget_start": 0.0, "heldout": 0})
    result = run.run(free, "tiny", tmp_path / "o", judged=judged, quiet=True)
    assert result.iteration == 1
    # Two samples, in both orders; each candidate is scored.
    assert len(asked) == 4
    assert "+" in asked[0] or "plus" in asked[0]
    for other in (None, {"calculator": Tournament(ProgramJudge(score), rubric)}):
        with pytest.raises(CheckpointError, match="other judged; give what it began"):
            run.run(free, "tiny", tmp_path / "o", judged=other, resume=True, quiet=True)
    run.run(free, "tiny", tmp_path / "o", judged=judged, resume=True, quiet=True)


def test_the_weights_that_were_pushed_last_are_kept(tmp_path):
    """A run that was killed behind version 9 and goes on from before it."""
    for old in ("00000008", "00000009"):
        (tmp_path / old).mkdir()
    model, tokenizer = k3.load("tiny"), k3.tokenizer("tiny")
    served.pushed(model, tokenizer, tmp_path, 5, "true {folder}")
    served.pushed(model, tokenizer, tmp_path, 6, "true {folder}")
    held = sorted(path.name for path in tmp_path.iterdir())
    assert held == ["00000005", "00000006"]
