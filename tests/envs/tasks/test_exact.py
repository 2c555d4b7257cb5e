"""One right answer: the first that is given counts."""

from k3.envs.tasks.exact import Exact


def made():
    return Exact(goal="?", abilities={}, accepts="7".__eq__, script=lambda: iter(()))


def test_only_the_first_answer_counts():
    task = made()
    assert task.score() == 0.0
    task.submit(" 7\n")
    task.submit("8")
    assert task.score() == 1.0


def test_a_second_try_is_none():
    task = made()
    task.submit("8")
    task.submit("7")
    assert task.score() == 0.0
