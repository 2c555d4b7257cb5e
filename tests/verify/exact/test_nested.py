"""The arguments of operations keep their nesting."""

import torch

from k3.verify.exact import nested

ARGUMENTS = ([1, (2, None)], {"dim": [3], "size": torch.Size([4, 5])})


def test_every_leaf_is_seen_in_order():
    assert nested.leaves(ARGUMENTS) == [1, 2, None, 3, 4, 5]
    assert nested.leaves(7) == [7]


def test_the_nesting_and_its_types_stay():
    found = nested.mapped(lambda x: x and x + 1, ARGUMENTS)
    assert found == ([2, (3, None)], {"dim": [4], "size": torch.Size([5, 6])})
    assert type(found[1]["size"]) is torch.Size


def test_results_with_names_keep_them():
    largest = nested.mapped(lambda x: -x, torch.tensor([1.0, 4.0]).max(0))
    assert (largest.values, largest.indices) == (-4.0, -1)
