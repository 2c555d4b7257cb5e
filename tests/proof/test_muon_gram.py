"""Orthogonalized heads: the logic's merged matrix is the spec's, column by column."""

import random
from fractions import Fraction

import numpy as np
import pytest

from k3.logic.falsify import call
from k3.proof import muon_gram
from k3.spec import muon as spec


def method(head, block):
    """Another invertible change of rows and columns for each head."""
    scaled = np.array(block, dtype=object) * (head + 2)
    return scaled[::-1] + head


@pytest.mark.parametrize(("rows", "heads", "width"), [(1, 1, 1), (3, 2, 3), (2, 3, 1)])
def test_the_merged_matrix_is_that_of_the_spec(rows, heads, width):
    rng = random.Random(f"{rows} {heads} {width}")
    entries = [Fraction(rng.randint(-5, 5), 2) for _ in range(rows * heads * width)]
    matrix = np.array(entries, dtype=object).reshape(rows, heads * width)
    blocks = spec.split_columns(matrix, heads)
    outputs = [method(head, block) for head, block in enumerate(blocks)]
    merged = spec.merge_columns(outputs)

    def apply(head, block, row, column):
        assert block == tuple(map(tuple, blocks[head]))
        return method(head, block)[row, column]

    given = [apply, lambda i, j: matrix[i, j], rows, width]
    for head, block in enumerate(blocks):
        split = call(muon_gram.SPLIT, [*given[1:], head])
        assert split == tuple(map(tuple, block))
    for row in range(rows):
        for flat in range(heads * width):
            entry = call(muon_gram.ORTHOGONALIZED, [*given, row, flat])
            assert entry == merged[row, flat]


def test_orthonormal_heads_stay_orthonormal():
    turn = np.array([[3, -4], [4, 3]], dtype=object) * Fraction(1, 5)

    def apply(head, block, row, column):
        return turn[row, column] * (-1) ** head

    given = [apply, lambda i, j: Fraction(i + j), 2, 2]
    merged = np.array(
        [
            [call(muon_gram.ORTHOGONALIZED, [*given, i, j]) for j in range(6)]
            for i in range(2)
        ]
    )
    for block in spec.split_columns(merged, 3):
        assert (spec.gram(block) == np.eye(2)).all()
