"""Programs to write: words and code say the same, and every step is tried."""

import json
import random

import pytest

from k3.envs.tasks import programs

HAND = [
    ("numbers", "drop the numbers that {k} divides", [4, -3, 0, 7], [-3, 7]),
    ("numbers", "replace each number by its square", [-3, 5, 0], [2, 4, 0]),
    ("numbers", "add to each number the one before", [1, -2, 5], [1, -1, 3]),
    ("numbers", "replace each number by the largest", [1, -2, 5], [1, 1, 5]),
    ("numbers", "sort by the last decimal digit", [-19, 21, 1, 30], [30, 21, 1, -19]),
    ("numbers", "keep only the first", [2, 1, 2, 1], [2, 1]),
    ("numbers", "multiply each number by its place", [5, -1, 2], [5, -2, 6]),
    ("numbers", "move the first", [1, 2, 3], [3, 1, 2]),
    ("numbers", "add {m}", [-8, 0, 3], [-1, 0, 3]),
    ("letters", "spell", "abc de", "cba ed"),
    ("letters", "replace each vowel", "abeiou", "ebioua"),
    ("letters", "sort the words", "abc d ef g", "d g ef abc"),
    ("letters", "drop the words", "a bc def", "bc def"),
    ("letters", "cut each word", "abcb aa xyz", "a xyz"),
    ("letters", "write every third", "a b c d", "a b c c d"),
    ("letters", "put behind", "ab c", "ab2 c1"),
    ("letters", "turn", "ab c", "c ab"),
    ("letters", "keep only", "a b a", "a b"),
    ("sales", "add up", [["a", 1], ["b", 2], ["a", 3]], [["a", 4], ["b", 2]]),
    ("sales", "drop", [["a", 7], ["b", 6]], [["a", 7]]),
    ("sales", "sort", [["b", 1], ["a", 1], ["c", 2]], [["c", 2], ["a", 1], ["b", 1]]),
    ("sales", "keep the first", [["a", 1]] * 3, [["a", 1]] * 2),
    (
        "sales",
        "of each",
        [["a", 1], ["a", 2], ["b", 0], ["a", 2]],
        [["a", 2], ["b", 0]],
    ),
    ("sales", "subtract", [["a", 5], ["b", 7]], [["a", 5], ["b", 2]]),
    ("sales", "replace", [["a", 9]], [["a", 2]]),
]


@pytest.mark.parametrize(("kind", "words", "given", "output"), HAND)
def test_a_step_does_what_it_says(kind, words, given, output):
    family = programs.FAMILIES[kind]
    found = [code for said, code in family.steps if said.startswith(words)]
    assert len(found) == 1
    code = programs._filled(found[0], {"k": 2, "m": 7})
    made = programs.Program(family=family, words=(words,), code=(code,))
    assert made.output(given) == output


@pytest.mark.parametrize("kind", programs.FAMILIES)
def test_every_composition_takes_what_the_one_before_makes(kind):
    rng = random.Random(5)
    for _ in range(40):
        made = programs.draw(rng, kind, 4)
        for _ in range(4):
            given = made.family.example(rng)
            before = json.dumps(given)
            json.dumps(made.output(given))
            assert json.dumps(given) == before
        assert "{" not in "".join(made.words)
