"""A run of MLA: the logic's cache after a run is that of a loop in Python."""

import pytest

from k3.logic.falsify import call
from k3.proof import mla_run


@pytest.mark.parametrize(("held", "tokens"), [(0, 0), (0, 1), (2, 3), (3, 1)])
def test_a_run_adds_an_entry_for_each_token(held, tokens):
    before = tuple(f"old{i}" for i in range(held))
    words = tuple(f"t{i}" for i in range(tokens))

    def step(cache, token):
        grown = (*cache, f"{token} after {len(cache)}")
        return grown, len(grown)

    after, outputs = call(mla_run.RUN, [step, before, words])
    added = tuple(f"{t} after {held + i}" for i, t in enumerate(words))
    assert after == before + added
    assert outputs == tuple(range(held + 1, held + tokens + 1))
    assert call(mla_run.SIZE, [after]) == held + call(mla_run.COUNT, [words])
