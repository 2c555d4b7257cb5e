"""The code tables: the logic's values are the spec's, every code."""

import sys

import pytest

from k3.logic.falsify import call
from k3.proof import mx_codes
from k3.spec import mx as spec


@pytest.fixture
def deep():
    """254 is a recursion of 254 steps."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(before)


def test_every_e2m1_code_has_the_value_of_the_spec():
    for code in range(16):
        other = call(mx_codes.NEGATED, [code])
        assert other == (code + 8) % 16
        assert call(mx_codes.DECODED, [code]) == spec.e2m1(code)
        assert spec.e2m1(other) == -spec.e2m1(code)


@pytest.mark.usefixtures("deep")
def test_every_e8m0_code_has_the_value_of_the_spec():
    for code in range(255):
        assert call(mx_codes.SCALE, [code]) == spec.e8m0(code) > 0
