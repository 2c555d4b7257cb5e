"""Typed values in both directions."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.data.xtml import values
from k3.errors import RequestError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "kind", "body"),
    [
        ("a\nb", "string", "a\nb"),
        ('"', "string", '"'),
        ("", "string", ""),
        (3, "number", "3"),
        (-0.5, "number", "-0.5"),
        (1e400, "number", "Infinity"),
        (True, "boolean", "true"),
        (False, "boolean", "false"),
        (None, "null", "null"),
        ({"k": "v", "a": 1}, "object", '{"k": "v", "a": 1}'),
        ([1, "two", None], "array", '[1, "two", null]'),
        ((), "array", "[]"),
        ({"é": "汉"}, "object", '{"é": "汉"}'),
    ],
)
def test_types_and_bodies(value, kind, body):
    assert values.type_of(value, "x") == kind
    assert values.body(value, "x") == body


def test_what_json_cannot_hold_is_refused():
    with pytest.raises(RequestError, match=r"^args\.k must be a JSON value: got"):
        values.type_of({1, 2}, "args.k")
    with pytest.raises(RequestError, match=r"^args\.k must be a JSON value: Object"):
        values.body([{1}], "args.k")


def test_declarations_are_sorted_and_compact():
    found = values.compact([{"b": {"d": 1, "c": "é"}, "a": [2, 1]}], "tools")
    assert found == '[{"a":[2,1],"b":{"c":"é","d":1}}]'


@pytest.mark.parametrize(
    ("given_", "found"),
    [
        (None, {}),
        ("", {}),
        (" \n", {}),
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ("{oops", "{oops"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_arguments(given_, found):
    assert values.arguments(given_, "x") == found


@pytest.mark.parametrize("given_", ["[1]", "3", '"text"', "null", "true"])
def test_json_that_is_no_object_is_refused(given_):
    with pytest.raises(RequestError, match="x must be the JSON text of an object"):
        values.arguments(given_, "x")


def test_arguments_of_another_kind_are_refused():
    with pytest.raises(RequestError, match="x must be an object or its JSON text"):
        values.arguments([1], "x")


@settings(deadline=None)
@given(JSON)
def test_the_type_of_a_json_text(value):
    assert values.json_type(json.dumps(value)) == values.type_of(value, "x")


@pytest.mark.parametrize("text", ["1e400", "-0", "9" * 5000, " 1 "])
def test_numbers_of_any_size_are_numbers(text):
    assert values.json_type(text) == "number"


@pytest.mark.parametrize("text", ["", " ", "NaN", "Infinity", "[NaN]", "a", "{", "01"])
def test_what_is_not_json(text):
    assert values.json_type(text) is None


def test_deep_nesting_is_not_an_error():
    assert values.json_type("[" * 1_000_000) is None
