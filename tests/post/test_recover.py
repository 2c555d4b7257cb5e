"""Where a run goes on: updates with the rewards they had, snapshots that are whole."""

import bandit
import pytest

from k3.errors import RequestError
from k3.post import rl
from k3.post.rewards import Rewards
from k3.train import snapshot

pytestmark = pytest.mark.usefixtures("unchecked")


class Killed(BaseException):
    """What ends a run at a place of the test's choice."""


def test_an_update_that_is_made_again_has_the_rewards_it_had(tmp_path, monkeypatch):
    """A judge would be asked anew, and might say something else."""
    told, save = [], rl.save

    def judged(self, group, iteration):
        told.append([1 / (1 + len(told) + i) for i in range(len(group))])
        return told[-1]

    def killed(*given):
        raise Killed

    monkeypatch.setattr(Rewards, "of", judged)
    monkeypatch.setattr(rl, "save", killed)
    with pytest.raises(Killed):
        bandit.run(tmp_path, bandit.recipe(iterations=1))
    assert snapshot.read(tmp_path)[1]["iteration"] == 0
    monkeypatch.setattr(rl, "save", save)
    before, records = len(told), []
    bandit.run(tmp_path, bandit.recipe(iterations=1), report=records.append)
    assert len(told) == before
    assert records[0]["again"] is True
    given = [reward for rewards in told for reward in rewards]
    assert records[0]["reward"] == pytest.approx(sum(given) / len(given))


def test_a_judge_that_fails_costs_no_snapshot(tmp_path, monkeypatch):
    of = Rewards.of

    def failing(self, group, iteration):
        if iteration:
            raise RequestError("the judge is gone")
        return of(self, group, iteration)

    monkeypatch.setattr(Rewards, "of", failing)
    with pytest.raises(RequestError, match="the judge is gone"):
        bandit.run(tmp_path, bandit.recipe(checkpoint_minutes=60))
    assert snapshot.read(tmp_path)[1]["iteration"] == 1
    monkeypatch.setattr(Rewards, "of", of)
    assert bandit.run(tmp_path).at.iteration == 2
