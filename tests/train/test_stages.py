"""A curriculum: which stage a step belongs to, and what is no stage."""

import dataclasses

import pytest

from k3.errors import ConfigError, RequestError
from k3.train import stages
from k3.train.stages import Stage

TEXT = "0.6:64:8,0.3:128:4,0.1:512:1"


def test_stages_are_read_and_written():
    found = stages.parse(TEXT)
    assert found[1] == Stage(fraction=0.3, tokens=128, batch=4)
    assert ",".join(map(str, found)) == TEXT
    assert stages.parse("") == ()


@pytest.mark.parametrize("text", ["0.5:64", "a:64:8", "0.5:64:8,", "0.5:64:8:1"])
def test_what_is_no_stage_is_refused(text):
    with pytest.raises(RequestError, match="a stage is FRACTION:TOKENS:BATCH, as in"):
        stages.parse(text)


@pytest.mark.parametrize("text", ["0:64:8", "1.5:64:8", "1:1:8", "1:64:0", "nan:9:9"])
def test_a_stage_that_cannot_run_is_refused(text):
    with pytest.raises(ConfigError, match="a stage has a fraction of the steps above"):
        stages.parse(text)


def test_steps_are_shared_out_by_fraction():
    found = stages.parse(TEXT)
    tokens = [stages.at(found, step, 10).tokens for step in range(11)]
    assert tokens == 6 * [64] + 3 * [128] + 2 * [512]


def test_rounding_leaves_no_step_out():
    thirds = stages.parse("0.333333:8:1,0.333333:9:1,0.333334:10:1")
    assert [stages.at(thirds, s, 4).tokens for s in range(4)] == [8, 9, 9, 10]


def test_a_recipe_without_stages_has_one(small):
    assert small.stage(5) == Stage(fraction=1.0, tokens=33, batch=2)


def test_a_recipe_follows_its_stages(small):
    recipe = small.set({"stages": "0.5:20:3,0.5:40:1", "steps": 8})
    assert [recipe.stage(step).tokens for step in (0, 3, 4, 7)] == [20, 20, 40, 40]
    assert recipe.to_dict()["stages"] == ["0.5:20:3", "0.5:40:1"]
    assert dataclasses.replace(recipe, stages=()).stage(0).tokens == 33
