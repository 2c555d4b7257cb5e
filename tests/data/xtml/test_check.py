"""How error sentences show what came."""

import pytest

from k3.data.xtml import check
from k3.errors import RequestError


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "true"),
        ({"a": 1}, "an object"),
        ([1, 2], "a list of 2"),
        (3, "3"),
        ("a", "'a'"),
    ],
)
def test_shown(value, words):
    assert check.shown(value) == words


def test_long_values_are_cut():
    assert len(check.shown("x" * 1000)) == 61


def test_optional_fields():
    assert check.string(None, "x", optional=True) == ""
    assert check.sequence(None, "x", optional=True) == ()
    with pytest.raises(RequestError, match=r"^x must be a string or null: got 3; send"):
        check.string(3, "x", optional=True)
    with pytest.raises(RequestError, match=r"^x must be a list: got 'ab'; send"):
        check.sequence("ab", "x")
