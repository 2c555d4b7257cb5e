"""Two-digit addition: what the tool computes and refuses."""

import pytest

from k3.envs import calculator


def test_it_computes():
    assert calculator.compute({"a": 12, "op": "+", "b": 35}) == "47"
    assert calculator.compute({"a": 12, "op": "-", "b": 35}) == "-23"
    assert calculator.compute({"a": 0.5, "op": "*", "b": 4}) == "2.0"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"a": 1, "b": 2}, "takes a, op and b"),
        ({"a": "1", "op": "+", "b": 2}, "are numbers"),
        ({"a": 10**13, "op": "+", "b": 2}, "are numbers"),
        ({"a": float("nan"), "op": "+", "b": 2}, "are numbers"),
        ({"a": 1, "op": "/", "b": 2}, "op is one of"),
    ],
)
def test_it_refuses(arguments, said):
    with pytest.raises(ValueError, match=said):
        calculator.compute(arguments)


def test_numbers_have_two_digits():
    for index in range(50):
        needed = calculator.make("train", index).needed
        assert all(10 <= needed[name] <= 99 for name in ("a", "b"))
