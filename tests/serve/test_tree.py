"""Shapes of token trees: by branching, by paths, cut, and what is none."""

import pytest

from k3.errors import RequestError
from k3.serve.tree import Tree


def test_a_branching_is_counted_by_depth():
    tree = Tree.of([2, 2, 1])
    assert tree.parents == (-1, -1, 0, 0, 1, 1, 2, 3, 4, 5)
    assert tree.depth == 3
    assert tree.below()[-1] == [0, 1]
    assert tree.below()[1] == [4, 5]
    assert tree.cut(2) == Tree.of([2, 2])
    assert tree.cut(7) == tree
    assert Tree.of([1, 1, 1]).parents == (-1, 0, 1)


def test_paths_give_candidates_by_their_ranks():
    tree = Tree.of([[0, 0], [0], [1], [0, 1], [0, 0, 0]])
    assert tree.parents == (-1, -1, 0, 0, 2)
    assert tree.cut(1).parents == (-1, -1)


@pytest.mark.parametrize(
    "wrong",
    [
        *([], [0], [8, 9], [[]], [[1]], [[0], [0]], [[0], [1, 0, 0]], [[0], [-1]]),
        *("21", 3, [True], [1, [0]]),
    ],
)
def test_what_is_no_tree_is_refused(wrong):
    with pytest.raises(RequestError, match="a token tree is a branching for each dep"):
        Tree.of(wrong)


def test_parents_come_first_and_are_few():
    with pytest.raises(RequestError, match="a tree has 1 to 64 candidates"):
        Tree((0,))
    with pytest.raises(RequestError, match="got 65"):
        Tree((-1,) * 65)
