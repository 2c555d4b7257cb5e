"""Boundaries of packed sequences, and the sentence that refuses wrong ones."""

import pytest
import torch

from k3.errors import ShapeError
from k3.kernels import segments


def test_lengths():
    assert segments.lengths([0, 3, 3, 10], 10) == (3, 0, 7)
    assert segments.lengths(torch.tensor([0, 4], dtype=torch.int32), 4) == (4,)
    assert segments.lengths([0, 0, 0], 0) == (0, 0)


@pytest.mark.parametrize(
    "bounds",
    [
        [],
        [0],
        [1, 5],
        [0, 4],
        [0, 6],
        [0, 3, 2, 5],
        [0, -1, 5],
        [[0, 5]],
        [0, 2.5, 5],
        5,
    ],
)
def test_wrong_boundaries_are_refused(bounds):
    with pytest.raises(ShapeError, match=r"must start at 0, never fall and end at"):
        segments.lengths(torch.tensor(bounds), 5)


def test_the_sentence_has_the_rule_the_numbers_and_what_to_do():
    with pytest.raises(ShapeError, match=r"tokens \(5\): got \[0, 4\]; pass the cumul"):
        segments.lengths([0, 4], 5)
