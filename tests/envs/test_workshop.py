"""A workshop: abilities over a sandbox that comes back when it is killed."""

import pytest

from k3.envs import judging, workshop
from k3.envs.sandbox import Limits
from k3.envs.workshop import Workshop
from k3.errors import CheckpointError, RequestError


def kill(box):
    """End a sandbox and wait until it has: until then it may still answer."""
    box._process.kill()
    box._process.wait()


@pytest.fixture
def shop(boxes):
    made = Workshop(boxes, {"a.txt": b"one\ntwo\ntwo\n\xff"}, Limits(seconds=30.0))
    yield made
    made.close()
    made.close()


def test_nothing_is_started_until_it_is_used(boxes):
    shop = Workshop(boxes, {})
    shop.close()
    assert shop._box is None
    assert shop.run is not None
    with pytest.raises(RequestError, match="must be open"):
        shop.run("true")


def test_it_runs_reads_writes_and_edits_and_says_what_is_wrong(shop):
    assert shop.run("echo out; echo err >&2; exit 3") == "out\nerr\n[exit code 3]"
    assert shop.run("true") == ""
    assert shop.read("a.txt", 2, 1) == "two"
    assert shop.read("a.txt", -3) == "one\ntwo\ntwo\n�"
    assert shop.read("b.txt").startswith("Error: ")
    assert shop.write("d/b.txt", "x y") == "d/b.txt has 3 bytes."
    assert shop.edit("d/b.txt", "y", "z") == "d/b.txt has 3 bytes."
    assert shop.read("d/b.txt") == "x z"
    assert shop.write("a.txt/c", "x").startswith("Error: ")
    assert shop.edit("a.txt", "two", "2").endswith("it stands there 2 times.")
    assert shop.edit("a.txt", "", "2").endswith("it stands there 0 times.")
    assert shop.edit("none", "a", "b").startswith("Error: ")


def test_a_killed_sandbox_comes_back_and_the_work_goes_on(shop):
    shop.run("echo kept > b.txt")
    kill(shop._box)
    assert shop.run("cat b.txt") == "kept"
    kill(shop._box)
    assert shop.read("b.txt") == "kept"


def test_one_that_is_killed_while_it_works_does_it_again(shop):
    shop.run("echo 1 > count")
    killed = []

    def work(box):
        box.run(["bash", "-c", "echo 1 >> count"])
        if not killed:
            killed.append(kill(box))
        return box.run(["wc", "-l", "count"]).text

    assert shop.use(work) == "2 count\n"


def test_a_fork_judges_and_leaves_nothing(shop):
    shop.run("echo 1 > b.txt")
    assert shop.judge(lambda box: box.run(["rm", "b.txt"]).code) == 0
    assert shop.read("b.txt") == "1"


def test_sandboxes_that_are_lost_again_and_again_are_a_sentence(shop, monkeypatch):
    monkeypatch.setattr(workshop, "TRIES", 2)
    lost = []

    def die(box):
        lost.append(box)
        kill(box)
        box.run(["true"])

    with pytest.raises(
        CheckpointError, match=r"lost 2 in a row \(a sandbox must be alive"
    ):
        shop.use(die)
    monkeypatch.setattr(judging, "TRIES", 2)
    with pytest.raises(judging.Killed, match="it ended 2 in a row"):
        shop.judge(die)
    assert len(lost) == 4


def test_files_that_are_closed_to_their_owner_are_kept(shop):
    assert shop.run("echo x > f; chmod 000 f") == ""
    kill(shop._box)
    assert shop.read("f") == "x"
    shop.run("chmod 000 f")
    assert shop.judge(lambda box: box.read("f")) == b"x\n"


def test_where_files_cannot_be_copied_the_checkpoint_before_stays(boxes, monkeypatch):
    shop = Workshop(boxes, {"f": b"1"}, Limits(seconds=30.0))
    shop.run("echo 2 > f")

    def fails():
        raise RequestError("a file went away")

    with monkeypatch.context() as patch:
        patch.setattr(shop._box, "checkpoint", fails)
        assert shop.run("echo 3 > f; cat f") == "3"
        with pytest.raises(RequestError, match="went away"):
            shop.judge(lambda box: None)
    kill(shop._box)
    assert shop.read("f") == "2"
    shop.close()


def test_one_that_is_lost_while_it_is_made_is_made_again(boxes, monkeypatch):
    made = []

    def create(*args, **options):
        made.append(args)
        if len(made) == 1:
            raise RequestError("a sandbox must be alive to be used: got one killed")
        return whole(*args, **options)

    whole = boxes.create
    monkeypatch.setattr(boxes, "create", create)
    shop = Workshop(boxes, {"f": b"1"})
    assert shop.read("f") == "1"
    assert len(made) == 2
    shop.close()
