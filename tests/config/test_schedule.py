"""The layer schedule: every fourth layer and the last."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.config import schedule


@settings(deadline=None)
@given(st.integers(1, 300))
def test_partition(layers):
    mla, kda = schedule.mla_layers(layers), schedule.kda_layers(layers)
    assert sorted([*mla, *kda]) == list(range(1, layers + 1))
    assert mla[-1] == layers
    assert all((p % 4 == 0) == (p in mla) for p in range(1, layers))


@pytest.mark.parametrize(
    ("layers", "mla"), [(1, [1]), (4, [4]), (7, [4, 7]), (9, [4, 8, 9]), (0, [])]
)
def test_small(layers, mla):
    assert schedule.mla_layers(layers) == mla
