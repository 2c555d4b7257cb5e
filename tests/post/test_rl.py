"""The loop: it learns, and whatever ends it, no finished sample is lost."""

import random
import signal
import time

import bandit
import pytest
import torch

from k3.errors import CheckpointError, RequestError
from k3.post import journal, rl
from k3.train import snapshot

pytestmark = pytest.mark.usefixtures("unchecked")


class Killed(BaseException):
    """What ends a run at a place of the test's choice."""


def lines(directory, kind):
    found = journal.read(directory / journal.FILE_NAME)
    return [line for line in found if line["kind"] == kind]


def check_complete(directory, iterations, recipe=None):
    """Each sample was finished once, and each group learned from once."""
    keys = [line["key"] for line in lines(directory, "finished")]
    assert len(keys) == len(set(keys))
    updates = lines(directory, "learned")
    assert [line["iteration"] for line in updates] == list(range(iterations))
    groups = [group for line in updates for group in line["groups"]]
    assert len(groups) == len(set(groups))
    held = (recipe or bandit.recipe()).samples
    for group in groups:
        assert {f"{group}:{i}" for i in range(held)} <= set(keys)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing ended: its folder, its loop, its records."""
    directory, records = tmp_path_factory.mktemp("whole"), []
    found = bandit.run(directory, report=records.append)
    return directory, found, records


def test_a_run_says_what_it_did(whole):
    directory, found, records = whole
    check_complete(directory, 2)
    assert [r["step"] for r in records] == [1, 2]
    for record in records:
        assert record["samples"] == 12
        assert record["parity"]["max"] < 1e-4
        assert record["parity"]["tokens"] == record["learned_tokens"] > 0
        assert record["staleness"] == {"mean": 0.0, "max": 0}
        assert 0 <= record["success"] == record["reward"] <= 1
    assert found.at.iteration == found.sampler.version == 2
    assert records[0]["learning_rate"] > records[1]["learning_rate"]


POINTS = ("sampled", "logged", "learned", "updated", "handed", "saved")


def kill(found, point, monkeypatch, count):
    """Let the count-th passing of a point end the run."""
    places = {
        "sampled": (found.sampler, "step"),
        "logged": (found.journal, "append"),
        "learned": (found.policy, "update"),
        "updated": (found.policy.masters, "step"),
        "handed": (found.sampler, "update"),
        "saved": (rl, "save"),
    }
    owner, name = places[point]
    before, left = getattr(owner, name), [count]

    def passing(*given, **named):
        result = before(*given, **named)
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return result

    monkeypatch.setattr(owner, name, passing)


@pytest.mark.parametrize("point", POINTS)
def test_a_run_that_was_cut_ends_as_one_that_was_not(
    whole, tmp_path, monkeypatch, point
):
    count = {"sampled": 9, "logged": 17}.get(point, 2)
    made = bandit.loop

    def armed(*given):
        found = made(*given)
        kill(found, point, monkeypatch, count)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(bandit, "loop", armed)
        with pytest.raises(Killed):
            bandit.run(tmp_path)
    monkeypatch.undo()
    records = []
    found = bandit.run(tmp_path, report=records.append)
    check_complete(tmp_path, 2)
    check_same_samples(whole[0], tmp_path)
    if point not in ("sampled", "logged"):
        for name, value in bandit.weights(whole[1]).items():
            assert torch.equal(value, bandit.weights(found)[name]), name
    assert found.at.learned_tokens == whole[1].at.learned_tokens
    assert found.at.sampled_tokens == whole[1].at.sampled_tokens


def killed(directory, iterations, kills, rng):
    """Kill the run so often after a random number of lines; let it end."""
    left = kills
    while True:
        process = bandit.start(directory, iterations)
        path = directory / journal.FILE_NAME
        before = len(path.read_bytes()) if path.exists() else 0
        wanted = before + rng.randint(1, 6000)
        while left and process.is_alive():
            if path.exists() and len(path.read_bytes()) >= wanted:
                time.sleep(rng.random() * 0.05)
                process.kill()
                left -= 1
                break
            time.sleep(0.002)
        process.join()
        if process.exitcode == 0:
            return left


def test_kill_9_loses_no_finished_sample(tmp_path):
    assert killed(tmp_path, 2, 1, random.Random(0)) == 0
    check_complete(tmp_path, 2)


@pytest.mark.slow
def test_ten_kills_lose_no_finished_sample(tmp_path):
    assert killed(tmp_path, 12, 10, random.Random(1)) == 0
    check_complete(tmp_path, 12)


def check_same_samples(one, two):
    """The same tokens; who else ran beside them may have changed a last bit."""
    wanted, found = (
        {line["key"]: line for line in lines(directory, "finished")}
        for directory in (one, two)
    )
    assert wanted.keys() == found.keys()
    for key, line in wanted.items():
        assert line["tokens"] == found[key]["tokens"]
        assert line["logprobs"] == pytest.approx(found[key]["logprobs"], abs=1e-5)


def test_partial_rollouts_keep_what_is_under_way(tmp_path):
    records = []
    chosen = bandit.recipe(share=0.5, iterations=3)
    found = bandit.run(tmp_path, chosen, report=records.append)
    assert any(r["staleness"]["max"] > 0 for r in records if "staleness" in r)
    updates = lines(tmp_path, "learned")
    groups = {group for line in updates for group in line["groups"]}
    open_ = {line["group"] for line in lines(tmp_path, "finished")} - groups
    assert open_ <= set(found.rollouts.groups)


def test_samples_of_open_groups_are_used_after_a_kill(tmp_path):
    chosen = bandit.recipe(share=0.5, iterations=1)
    bandit.run(tmp_path, chosen)
    before = {line["key"]: line for line in lines(tmp_path, "finished")}
    chosen = bandit.recipe(share=0.5, iterations=2)
    bandit.run(tmp_path, chosen)
    keys = [line["key"] for line in lines(tmp_path, "finished")]
    assert len(keys) == len(set(keys))
    assert set(before) < set(keys)


@pytest.mark.parametrize("where", ["begin", "reply", "reward"])
def test_an_environment_that_is_gone_ends_its_own_sample_alone(tmp_path, where):
    chosen, made = bandit.recipe(iterations=1), []

    def spoil(number):
        made.append(number)
        return where if number == 0 and made.count(0) == 2 else ""

    records = []
    bandit.run(tmp_path, chosen, bandit.Numbers(chosen, spoil), records.append)
    check_complete(tmp_path, 1)
    assert records[0]["failures"] == 1
    assert not any(line["lost"] for line in lines(tmp_path, "finished"))


def test_environments_that_never_answer_are_an_error(tmp_path):
    chosen = bandit.recipe(iterations=1)
    prompts = bandit.Numbers(chosen, lambda number: "reply")
    with pytest.raises(RequestError, match="got failures alone, the last OSError"):
        bandit.run(tmp_path, chosen, prompts)


@pytest.mark.parametrize("where", ["begin", "reply"])
def test_a_run_goes_on_once_its_environments_answer_again(tmp_path, where):
    chosen = bandit.recipe(iterations=1)
    prompts = bandit.Numbers(chosen, lambda number: where)
    with pytest.raises(RequestError, match="mend it and resume"):
        bandit.run(tmp_path, chosen, prompts)
    found = bandit.run(tmp_path, chosen)
    assert found.at.iteration == 1
    assert found.at.sampled_tokens > 0
    (line,) = lines(tmp_path, "learned")
    assert len(line["groups"]) == chosen.prompts
    ended = {line["key"]: line["lost"] for line in lines(tmp_path, "finished")}
    assert set(ended.values()) == {""}
    assert len(ended) == chosen.prompts * chosen.samples


def test_an_update_that_ctrl_c_waited_for_is_told(tmp_path, monkeypatch):
    made, records = bandit.loop, []

    def armed(*given):
        found = made(*given)
        update = found.policy.update

        def interrupted(*given, **named):
            signal.raise_signal(signal.SIGINT)
            return update(*given, **named)

        monkeypatch.setattr(found.policy, "update", interrupted)
        return found

    monkeypatch.setattr(bandit, "loop", armed)
    with pytest.raises(KeyboardInterrupt):
        bandit.run(tmp_path, report=records.append)
    assert snapshot.read(tmp_path)[1]["iteration"] == 1
    assert [record["step"] for record in records] == [1]
    assert snapshot.read(tmp_path)[1]["seconds"] == records[0]["seconds"] > 0


def test_a_journal_of_another_run_is_refused(tmp_path):
    bandit.run(tmp_path, bandit.recipe(iterations=1))
    chosen = bandit.recipe(iterations=2)
    with (tmp_path / journal.FILE_NAME).open("a") as file:
        file.write(
            '{"kind": "learned", "iteration": 1, "groups": ["77:even:77"], '
            '"rewards": [[0]]}\n'
        )
    with pytest.raises(CheckpointError, match="resuming needs a whole snapshot"):
        bandit.run(tmp_path, chosen)


def test_a_budget_makes_long_samples_bad(tmp_path):
    records = []
    chosen = bandit.recipe(iterations=1, budget_start=0.5, budget_end=0.5)
    bandit.run(tmp_path, chosen, report=records.append)
    assert records[0]["reward"] < records[0]["success"]


def test_parity_is_measured_where_nothing_is_learned(tmp_path, monkeypatch):
    monkeypatch.setattr(bandit.Even, "reward", lambda self: 0.0)
    records = []
    bandit.run(tmp_path, bandit.recipe(iterations=1), report=records.append)
    assert records[0]["learned_tokens"] == 0
    assert records[0]["parity"]["tokens"] > 0
    assert records[0]["parity"]["max"] < 1e-4
