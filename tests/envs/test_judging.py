"""Who ended a sandbox: what was judged in it, or something outside."""

import threading
import time

import pytest

from k3.envs import autonomous, judging
from k3.envs.judging import Killed, judged
from k3.envs.tasks import code
from k3.errors import CheckpointError, RequestError


class Box:
    """A sandbox that is ended in its run of this number; 0 lives."""

    def __init__(self, ends):
        self.ends, self.alive, self.destroyed = ends, True, False

    def run(self, argv):
        self.alive = not (self.ends == "always" or self.ends == argv[0])
        if not self.alive:
            raise RequestError("the sandbox has ended")
        return type("Ran", (), {"code": 0})

    def destroy(self):
        self.destroyed = True


def made(*ends):
    boxes = [Box(end) for end in ends]
    left = iter(boxes)
    return boxes, lambda: next(left)


def program(box):
    return box.run(["program"]).code


def test_a_sandbox_that_is_lost_is_made_anew():
    boxes, make = made("always", "always", "")
    assert judged(make, program) == 0
    assert all(box.destroyed for box in boxes)


def test_what_ends_every_sandbox_is_told_from_what_loses_them():
    boxes, make = made(*["program"] * (judging.TRIES + 1))
    with pytest.raises(Killed, match="it ended 10 in a row; it does not count"):
        judged(make, program)
    assert all(box.destroyed for box in boxes)
    _, make = made(*["always"] * (judging.TRIES + 1))
    with pytest.raises(CheckpointError, match="lost 10 in a row, and one more in wh"):
        judged(make, program)


def test_an_error_in_a_sandbox_that_lives_is_the_callers():
    _, make = made("")

    def refused(box):
        raise RequestError("no such file")

    with pytest.raises(RequestError, match="no such file"):
        judged(make, refused)


def ended(box):
    """Its process is killed, as a program with a way out of it could."""
    box._process.kill()
    box._process.wait()


@pytest.fixture
def submitted(boxes, monkeypatch):
    """Tasks whose right program waits to be judged; a third sandbox is one too many."""
    monkeypatch.setattr(judging, "TRIES", 2)
    written = code.make("train", 0, boxes)
    written.workshop.write("solution.py", written.program.source)
    assigned = autonomous.make("train", 0, boxes)
    assigned._write("solve.py", assigned.assignment.solution)
    assigned._keep()
    yield written, assigned
    for task in (written, assigned):
        task.close()


def killing(monkeypatch, boxes, *, all_of_them):
    """Every run ends its sandbox, or every run of a program of the task."""
    box = boxes.create()
    kind, run = type(box), type(box).run
    box.destroy()

    def killed(self, argv, **options):
        if all_of_them or argv[-1].endswith(".py"):
            ended(self)
        return run(self, argv, **options)

    monkeypatch.setattr(kind, "run", killed)


def test_a_program_that_ends_its_judges_scores_zero_and_says_why(
    submitted, boxes, monkeypatch
):
    killing(monkeypatch, boxes, all_of_them=False)
    for task in submitted:
        assert task.score() == 0.0
        assert "it ended 2 in a row" in task.why


def test_judges_that_die_of_something_else_are_no_zero(submitted, boxes, monkeypatch):
    killing(monkeypatch, boxes, all_of_them=True)
    for task in submitted:
        with pytest.raises(CheckpointError, match="one more in which nothing ran"):
            task.score()


def test_a_judge_that_is_lost_once_is_replaced(submitted, boxes, monkeypatch):
    lost = []
    box = boxes.create()
    kind, run = type(box), type(box).run
    box.destroy()

    def once(self, argv, **options):
        if not lost:
            ended(self)
            lost.append(self)
        return run(self, argv, **options)

    for task in submitted:
        lost.clear()
        monkeypatch.setattr(kind, "run", once)
        assert task.score() == 1.0
        assert task.why == ""


def test_one_that_is_hardly_made_is_destroyed(boxes):
    """Whatever bubblewrap has got to by then, nothing waits for it."""
    for milliseconds in range(12):
        made = boxes.create()
        time.sleep(milliseconds / 1000)
        ending = threading.Thread(target=made.destroy, daemon=True)
        ending.start()
        ending.join(20)
        assert not ending.is_alive(), milliseconds
