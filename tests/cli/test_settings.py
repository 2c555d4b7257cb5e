"""--set KEY=VALUE."""

import pytest

from k3.cli import settings
from k3.errors import RequestError


def test_values_are_json_where_they_are_json_and_text_elsewhere():
    given = ["a=1", "b=0.5", "c=[1, 2]", "d=true", "e=some text", "f=x=y", "a=2"]
    assert settings.parse(given) == {
        "a": 2,
        "b": 0.5,
        "c": [1, 2],
        "d": True,
        "e": "some text",
        "f": "x=y",
    }


@pytest.mark.parametrize("text", ["a", "=1", ""])
def test_a_pair_needs_its_equals_sign(text):
    with pytest.raises(RequestError, match="--set needs KEY=VALUE"):
        settings.parse([text])


def test_unknown_keys_come_with_the_nearest_or_all():
    with pytest.raises(RequestError, match="got stepz; did you mean steps"):
        settings.refuse_unknown(["stepz"], ["steps", "seed"])
    with pytest.raises(RequestError, match="known: seed, steps"):
        settings.refuse_unknown(["qqqqqq"], ["steps", "seed"])
