"""Shards give the losses and gradients of one process."""

import functools

import pytest
import small
import step_on_ranks

from k3.parallel import Mesh


@functools.cache
def one(count=4):
    return step_on_ranks.alone(count=count)


def same(got, want, bound=1e-5):
    """Every rank's loss and norm, and the gradients of all ranks together."""
    found = {}
    for loss, whole, norm, _ in got:
        assert abs(loss - want[0]) < bound
        assert abs(norm - want[2]) < bound * want[2]
        found |= whole
    assert set(found) == set(want[1])
    for name, gradient in want[1].items():
        if gradient is None:
            assert found[name] is None, name
        else:
            assert small.gap(found[name], gradient) < bound, name


@pytest.mark.parametrize("zero", [2, 3])
def test_two_shards_have_the_gradients_of_one_process(two, zero):
    same(two(Mesh(data=2), functools.partial(step_on_ranks.step, zero=zero)), one())
