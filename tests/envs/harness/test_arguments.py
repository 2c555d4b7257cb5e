"""Arguments that do not fit are told in a sentence."""

import pytest

from k3.envs.harness import arguments

PROPERTIES = {
    "count": {"type": "integer"},
    "size": {"type": "number"},
    "kind": {"type": "string", "enum": ["a", "b"]},
    "any": {},
}


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"count": 1, "size": 0.5, "kind": "a", "any": [None]}, ""),
        ({"count": 1.0}, "count must be of type integer; got 1.0"),
        ({"count": True}, "count must be of type integer; got true"),
        ({"count": 1, "size": "2"}, 'size must be of type number; got "2"'),
        ({"count": 1, "size": None}, "size must be of type number; got null"),
        ({"count": 1, "kind": "c"}, "kind must be one of ['a', 'b']; got 'c'"),
        ({"count": 1, "other": 1}, "the arguments are count, size, kind, any; got 'o"),
        ({}, "count must be given"),
    ],
)
def test_what_does_not_fit(given, wrong):
    found = arguments.misfit(given, PROPERTIES, ("count",))
    assert found.startswith(wrong)
    assert bool(found) == bool(wrong)


@pytest.mark.parametrize(
    "given",
    [
        "{",
        "[1]",
        "3",
        '{"a": NaN}',
        "[" * 100_000,
        '"text"',
        "null",
        '{"a": 1e999}',
    ],
)
def test_what_is_no_object_is_a_sentence(given):
    found = arguments.parsed(given)
    assert isinstance(found, str)
    assert found.startswith("Error: the arguments must be a JSON object")


def test_an_object_is_read_and_none_is_an_empty_one():
    assert arguments.parsed('{"a": [1, "x"]}') == {"a": [1, "x"]}
    assert arguments.parsed("") == {}


def test_half_a_surrogate_pair_is_replaced():
    found = arguments.parsed(r'{"a": ["\ud800x", "\ud83d\ude00"]}')
    assert found == {"a": ["?x", chr(0x1F600)]}


def test_words_of_a_line_are_typed_where_the_schema_says_so():
    assert arguments.typed("3", {"type": "integer"}) == 3
    assert arguments.typed("3", {"type": "string"}) == "3"
    assert arguments.typed("[" * 100_000, {"type": "array"}) == "[" * 100_000
    assert arguments.typed("three", {"type": "integer"}) == "three"
