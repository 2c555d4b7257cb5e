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


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 0), ("4096", 4096), ("100k", 100_000), ("1M", 1_000_000), ("1.5k", 1500)],
)
def test_tokens_may_be_counted_in_thousands_and_millions(text, count):
    assert settings.tokens("--tokens")(text) == count


@pytest.mark.parametrize("text", ["", "many", "-1", "1.5", "1G", "1 000", "k", "1e6"])
def test_what_is_no_number_of_tokens(text):
    with pytest.raises(RequestError, match="--tokens needs a whole number of tokens"):
        settings.tokens("--tokens")(text)


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 50_000, '{"a":' * 50_000])
def test_json_that_python_cannot_hold_is_refused_in_short(value):
    with pytest.raises(RequestError, match="--set seed has a value that no") as caught:
        settings.parse([f"seed={value}"])
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize("text", ["9" * 400, "9" * 5000 + "M", "0." + "9" * 5000])
def test_a_number_of_tokens_of_absurd_length_is_refused(text):
    with pytest.raises(RequestError, match="--tokens needs a whole number") as caught:
        settings.tokens("--tokens")(text)
    assert len(str(caught.value)) < 200
