"""Recipes as data: nine of them, settings by name, and what is refused."""

import json

import pytest

from k3.config import runs
from k3.envs import registry
from k3.errors import RequestError
from k3.post import recipes
from k3.train.distill import TEACHERS


def test_there_is_one_for_each_domain_and_effort():
    assert [(r.domain, r.effort) for r in recipes.RECIPES.values()] == [
        (teacher.domain, teacher.effort) for teacher in TEACHERS
    ]
    assert list(recipes.RECIPES) == list(runs.REINFORCED)


@pytest.mark.parametrize("name", recipes.RECIPES)
def test_its_environments_exist(name):
    recipe = recipes.named(name)
    assert set(recipe.tasks) <= set(registry.names())
    assert recipe.told == recipe.effort
    assert recipe.budget is not None


def test_lower_efforts_have_smaller_budgets():
    ends = [recipes.named(f"agentic-{e}").budget.end for e in ("low", "high", "max")]
    assert ends == sorted(ends)
    assert len(set(ends)) == 3


def test_settings_are_read_by_their_type():
    recipe = recipes.named("agentic-low").set(
        {"tasks": "lookup,calculator", "thinking": "false", "prompts": "3"}
        | {"learning_rate": 1e-5, "budget_start": 0}
    )
    assert recipe.tasks == ("lookup", "calculator")
    assert recipe.rollouts.prompts == 3
    assert (recipe.told, recipe.budget) == (None, None)
    assert json.loads(json.dumps(recipe.to_dict())) == recipe.to_dict()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"speed": 9}, "no setting 'speed' in recipe agentic-low"),
        ({"name": "x"}, "no setting 'name'"),
        ({"thinking": 1}, "setting thinking must be of type bool: got 1"),
        ({"prompts": "many"}, "setting prompts must be of type int: got 'many'"),
        ({"prompts": 0}, "prompts must be at least 1: got 0"),
        ({"share": 2}, "share must be above 0 and at most 1"),
        ({"tasks": ""}, "tasks must be at least one name"),
        ({"penalty": -1}, "penalty must be at least 0"),
        ({"optimizer": "sgd"}, "optimizer must be muon or adamw: got sgd"),
        ({"last_rate": 2}, "last_rate must be from 0 to 1"),
        ({"learning_rate": "nan"}, "learning_rate must be above 0 and finite"),
    ],
)
def test_what_cannot_run_is_refused(settings, said):
    with pytest.raises(RequestError, match=said):
        recipes.named("agentic-low").set(settings)


def test_an_unknown_recipe_is_refused():
    with pytest.raises(RequestError, match="a recipe is one of general-low"):
        recipes.named("agentic")


def test_rates_go_down_in_a_line():
    recipe = recipes.named("agentic-low").set(
        {"learning_rate": 1.0, "last_rate": 0.5, "iterations": 3}
    )
    assert [recipe.rate(i) for i in range(4)] == [1.0, 0.75, 0.5, 0.5]
    assert recipe.set({"iterations": 1}).rate(0) == 1.0
