"""What a control takes, and a list that may grow."""

import numpy as np
import pytest

from k3.errors import RequestError
from k3.reader.widgets import control
from k3.reader.widgets.control import Control

MARGINS = Control(
    name="m", value=[0.5, 0.0], label="margins", kind="array", low=-1, least=1, most=3
)


@pytest.mark.parametrize("value", [[0.1], [0.1, -1.0], [1, 0.5, 0.0]])
def test_a_list_that_may_grow_is_of_any_length_within_its_limits(value):
    assert control.accept(MARGINS, value) == value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "m must be 1 to 3 numbers: got \\[\\]"),
        ([0.1] * 4, "m must be 1 to 3 numbers"),
        ([[0.1]], "numbers of the shape"),
        ([0.1, "0.2"], "numbers of the shape"),
        ([0.1, 2.0], "m must be between -1 and 1"),
        (0.1, "numbers of the shape"),
        ([float("nan")], "numbers of the shape"),
    ],
)
def test_others_are_refused(value, words):
    with pytest.raises(RequestError, match=words):
        control.accept(MARGINS, value)


def test_random_values_are_taken_and_of_every_length():
    rng = np.random.default_rng(0)
    drawn = [control.draw(MARGINS, rng, bool(i % 2)) for i in range(60)]
    assert {len(each) for each in drawn} == {1, 2, 3}
    assert all(control.accept(MARGINS, each) == each for each in drawn)


def test_only_a_list_that_may_grow_tells_its_limits():
    assert control.export(MARGINS)["most"] == 3
    fixed = Control(name="x", value=0.5, label="x")
    assert {"least", "most", "rows"}.isdisjoint(control.export(fixed))


def test_plain_numbers_have_no_nan():
    found = control.plain(np.array([[1.0, np.nan], [np.inf, 2]]))
    assert found == [[1.0, None], [None, 2.0]]
