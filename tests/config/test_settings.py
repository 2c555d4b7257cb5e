"""Settings: every broken rule in one message, values read by type, names of runs."""

import math
import subprocess
import sys
from dataclasses import dataclass

import pytest

from k3 import recipes
from k3.config import runs, settings
from k3.errors import RequestError
from k3.train import Recipe


@dataclass(frozen=True, slots=True)
class Walk:
    """Settings of each kind that `changed` reads."""

    name: str = "walk"
    steps: int = 3
    pace: float = 1.0
    fast: bool = False
    stops: tuple[str, ...] = ("sea",)


KNOWN = settings.names(Walk, but=("name",))
READERS = {"stops": lambda text: tuple(text.split(","))}
RULES = [("steps", *settings.POSITIVE), ("name", "walk", lambda name: name == "walk")]


def test_every_broken_rule_is_a_sentence_in_the_order_of_the_rules():
    lost = Walk(name="", steps=0)
    said = ["steps must be at least 1: got 0", "name must be walk: got "]
    assert settings.wrong(Walk(), RULES) == []
    assert settings.wrong(lost, RULES) == said
    assert settings.wrong(lost, RULES, show=repr)[1] == "name must be walk: got ''"
    settings.check(Walk(), RULES)
    with pytest.raises(RequestError, match=f"^{'; '.join(said)}$"):
        settings.check(lost, RULES)


@pytest.mark.parametrize(
    ("test", "good", "bad"),
    [
        (settings.at_least(7), [7], [6]),
        (settings.POSITIVE, [1], [0]),
        (settings.COUNT, [0], [-1]),
        (settings.FRACTION, [0, 1], [-0.1, 1.1]),
        (settings.SHARE, [0.1, 1], [0, 1.1]),
        (settings.BELOW_ONE, [0, 0.9], [-0.1, 1]),
        (settings.ABOVE_ZERO, [1e-9], [0, math.inf]),
        (settings.NOT_NEGATIVE, [0], [-0.1, math.inf]),
    ],
)
def test_a_test_holds_up_to_its_bounds_and_never_of_nan(test, good, bad):
    words, holds = test
    assert words
    assert all(map(holds, good))
    assert not any(map(holds, [*bad, math.nan]))


def test_names_and_values_are_the_fields():
    assert KNOWN == ("steps", "pace", "fast", "stops")
    values = {"name": "walk", "steps": 3, "pace": 1.0, "fast": False, "stops": ("sea",)}
    assert settings.values(Walk()) == values


@pytest.mark.parametrize("fast", [True, "true", "True"])
def test_a_value_is_read_as_the_type_that_it_replaces(fast):
    given = {"steps": "7", "pace": 2, "fast": fast, "stops": "hill,inn"}
    want = Walk(steps=7, pace=2.0, fast=True, stops=("hill", "inn"))
    changed = settings.changed(Walk(), given, KNOWN, READERS)
    assert changed == want
    assert type(changed.pace) is float
    assert settings.changed(want, {"fast": "FALSE"}, KNOWN, READERS).fast is False


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"name": "run"},
            "no setting 'name' in recipe walk: choose one of steps",
        ),
        ({"steps": 1.5}, "setting steps must be of type int: got 1.5"),
        ({"pace": "slow"}, "setting pace must be of type float: got 'slow'"),
        ({"fast": 1}, "setting fast must be of type bool: got 1"),
    ],
)
def test_what_cannot_be_set_is_refused(given, said):
    with pytest.raises(RequestError, match=said):
        settings.changed(Walk(), given, KNOWN, READERS)


def test_names_of_training_are_all_the_recipes_there_are():
    made = {
        name
        for name, make in vars(recipes).items()
        if getattr(make, "__annotations__", {}).get("return") is Recipe
    }
    assert made == set(runs.TRAINED)
    assert [getattr(recipes, name)().name for name in runs.TRAINED] == [*runs.TRAINED]


def test_names_are_known_without_torch():
    code = "import k3.cli.rl, k3.cli.train, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
