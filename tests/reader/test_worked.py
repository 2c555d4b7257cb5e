"""Numbers of the chapters are computed by the functions that they name."""

import pytest

from k3.errors import ConfigError
from k3.reader import worked


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("k3.spec.situ:soft_cap(2., 4) | .6f", "1.848469"),
        ("k3.spec.situ:situ(2., 6.) | .6f", "9.585417"),
        ("Fraction(6, 14) | fraction", "3/7"),
        ("k3.spec.mla:row_scalars(512, 64)", "576"),
        ("96 * (192 + 128) | ,", "30,720"),
        ("array([1., 2.5]) | .1f", "[1.0, 2.5]"),
    ],
)
def test_values(given, shown):
    assert worked.value(given).shown == shown


@pytest.mark.parametrize(
    "given", ["open('x')", "k3.spec.situ:none(1)", "1 +", "1 | nonsense"]
)
def test_what_does_not_evaluate_is_refused(given):
    with pytest.raises(ConfigError, match="a worked number must evaluate"):
        worked.value(given)


def test_numbers_stand_in_text_and_formulas():
    assert worked.substituted("$x = {= 1 + 1 =}$") == "$x = 2$"
    assert list(worked.find("a {= 1 =} b {= 2 | d =}")) == ["1", "2 | d"]
