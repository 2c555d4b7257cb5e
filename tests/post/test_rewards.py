"""Rewards of a group: scores, tournaments, and what a budget of tokens does to both."""

import pytest

from k3.post.judge import ProgramJudge
from k3.post.rewards import Rewards
from k3.post.rubric import Line, Rubric
from k3.post.tournament import Tournament, TournamentOptions
from k3.train.rl import Budget
from k3.train.trajectory import Piece, Trajectory


class Talk:
    """An episode that ended, with what was said."""

    def __init__(self, answer):
        self.messages = [
            {"role": "user", "content": "Say a number."},
            {"role": "assistant", "content": answer},
        ]

    def begin(self):
        return [1]

    def reply(self, written):
        return None

    def reward(self):
        return 0.0


def one(reward, length, answer=""):
    made = Trajectory("k", "0:t:1", Talk(answer), reward=reward)
    made.write(Piece("k", (5,) * length, (-1.0,) * length, True), 0)
    return made


def test_scores_are_rewards():
    assert Rewards(baselines={}).of([one(1.0, 3), one(0.25, 9)], 0) == [1.0, 0.25]


@pytest.mark.parametrize(
    ("iteration", "rewards"),
    [(0, [1.0, 0.5, 0.25]), (1, [1.0, 0.5, -1.0]), (2, [1.0, -1.0, -1.0])],
)
def test_a_budget_closes(iteration, rewards):
    budget = Budget(start=3.0, end=1.0, steps=2, most=100)
    held = Rewards(baselines={"t": 10.0}, budget=budget)
    group = [one(1.0, 10), one(0.5, 20), one(0.25, 30)]
    assert held.of(group, iteration) == rewards


def tournament(factor=0.0):
    judge = ProgramJudge(lambda task, answer: {"size": float(answer)})
    lines = (Line(name="size", text="The larger number."),)
    options = TournamentOptions(factor=factor)
    return Tournament(judge, Rubric(lines=lines), options)


def test_judged_samples_meet_each_other():
    held = Rewards(baselines={"t": 10.0}, judged={"t": tournament()})
    group = [one(0.0, 5, "3"), one(0.0, 5, "1"), one(0.0, 50, "2")]
    assert held.of(group, 0) == [1.0, -1.0, 0.0]


def test_a_verbose_answer_loses_where_it_stands_first():
    group = [one(0.0, 5, "1"), one(0.0, 50, "2")]
    free = Rewards(baselines={"t": 10.0}, judged={"t": tournament()})
    assert free.of(group, 0) == [-1.0, 1.0]
    held = Rewards(baselines={"t": 10.0}, judged={"t": tournament(factor=2.0)})
    assert held.of(group, 0) == [0.0, 0.0]


def test_a_sample_that_was_lost_meets_nobody():
    lost = Trajectory("k", "0:t:1", Talk(""), reward=0.0, lost="gone")
    lost.episode.messages, asked = [], []

    def score(task, answer):
        asked.append((task, answer))
        return {"size": float(answer)}

    rubric = Rubric(lines=(Line(name="size", text="The larger number."),))
    held = Rewards(baselines={}, judged={"t": Tournament(ProgramJudge(score), rubric)})
    group = [lost, one(0.0, 3, "7"), lost, one(0.0, 3, "9")]
    assert held.of(group, 0) == [0.0, -1.0, 0.0, 1.0]
    assert {*asked} == {("Say a number.", "7"), ("Say a number.", "9")}
    assert held.of([lost, lost], 0) == [0.0, 0.0]
