"""What is printed: JSON that is JSON, laid out so that a person can read it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from k3.cli import output

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_the_layout_changes_no_value(value):
    assert json.loads(output.laid_out(value)) == value


def test_numbers_are_side_by_side_and_short_entries_too():
    value = {"ids": list(range(60)), "top": [{"id": 1, "text": "a"}, {"id": 2}]}
    lines = output.laid_out(value).splitlines()
    assert lines[1] == f'  "ids": {list(range(60))},'
    assert lines[2:] == [
        '  "top": [',
        '    {"id": 1, "text": "a"},',
        '    {"id": 2}',
        "  ]",
        "}",
    ]


def test_a_number_that_json_has_not_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        output.laid_out({"x": float("nan")})
