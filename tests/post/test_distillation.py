"""A whole run of MOPD in a folder: rates, retention, streamed teachers, going on."""

import json

import pytest

import k3
from k3.errors import CheckpointError
from k3.post import distillation
from k3.post.course import RECIPE, Course, Taught
from k3.train.rollout import Rollouts

SMALL = {
    "thinking": False,
    "iterations": 1,
    "prompts": 2,
    "max_tokens": 4,
    "heldout": 1,
    "workers": 1,
}


def course(**changes):
    teachers = ("agentic-low=tiny:calculator", "general-high=tiny:lookup")
    return Course(
        teachers=tuple(map(Taught.read, teachers)), recipe=RECIPE.set(SMALL | changes)
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    return distillation.distilled(course(), "tiny", directory, quiet=True), directory


def test_it_leaves_a_student_with_rates_and_retention(done):
    result, directory = done
    assert (result.iteration, result.directory) == (1, str(directory))
    assert result.sampled_tokens == result.learned_tokens
    nothing = {"agentic-low": 0.0, "general-high": 0.0}
    assert result.before == result.teachers == result.after == nothing
    assert result.retention == {"agentic-low": 1.0, "general-high": 1.0}
    k3.load(str(directory))
    (record,) = map(json.loads, (directory / "metrics.jsonl").read_text().splitlines())
    # Student and teachers are one model: nothing is to be learned.
    assert abs(record["loss"]) <= 1e-3


def test_it_goes_on_with_teachers_of_which_two_layers_are_held(done):
    before, directory = done
    longer = course(iterations=2, heldout=0)
    result = distillation.distilled(
        longer, "tiny", directory, stream=True, resume=True, quiet=True
    )
    assert (result.iteration, result.after, result.retention) == (2, {}, {})
    assert result.teachers == before.teachers


def test_another_course_is_refused(done):
    other = Course(teachers=course().teachers, recipe=course().recipe, limit=2.0)
    with pytest.raises(CheckpointError, match="other limit; give what it began with"):
        distillation.distilled(other, "tiny", done[1], resume=True, quiet=True)


def test_retention_is_the_share_of_each_gain():
    found = distillation.retained(
        {"a": 0.1, "b": 0.2}, {"a": 0.9, "b": 0.6}, {"a": 0.86, "b": 0.6}
    )
    assert found == pytest.approx({"a": 0.95, "b": 1.0})


def test_environments_of_samples_under_way_are_closed(done, monkeypatch):
    closed = []
    monkeypatch.setattr(Rollouts, "close", lambda rollouts: closed.append(rollouts))
    again = {"stream": True, "resume": True, "quiet": True}
    distillation.distilled(course(heldout=0), "tiny", done[1], **again)
    assert len(closed) == 1
