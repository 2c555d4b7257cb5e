"""Rewards of a finished group: scores, or a tournament, held to a budget of tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from k3.post.prompts import task_of
from k3.post.tournament import Tournament
from k3.train.rl import Budget
from k3.train.trajectory import Trajectory


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewards:
    """How samples are rewarded.

    `baselines` are tokens that a task took before the run. Samples of tasks in
    `judged` meet each other in its tournament, whose factor may hold their lengths;
    other rewards are scores.
    """

    baselines: Mapping[str, float]
    budget: Budget | None = None
    judged: Mapping[str, Tournament] = field(default_factory=dict)

    def of(self, group: Sequence[Trajectory], iteration: int) -> list[float]:
        """A reward for each sample, from -1 to 1."""
        task = task_of(group[0].group)
        lengths = [one.num_written for one in group]
        if task in self.judged:
            usual = self.baselines.get(task, 0.0)
            found = _met(self.judged[task], group, usual)
        else:
            found = [one.reward or 0.0 for one in group]
        if self.budget is None:
            return found
        return [
            self.budget.apply(reward, used, self.baselines[task], iteration)
            for reward, used in zip(found, lengths, strict=True)
        ]


def _met(
    tournament: Tournament, group: Sequence[Trajectory], usual: float
) -> list[float]:
    """What samples won; 0 for those that were lost, who meet nobody."""
    kept = [one for one in group if not one.lost]
    asked = _question(kept[0]) if kept else ""
    answers = [_answer(one) for one in kept]
    lengths = [one.num_written for one in kept]
    won = iter(tournament.rewards(asked, answers, lengths, usual))
    return [0.0 if one.lost else next(won) for one in group]


def _question(one: Trajectory) -> str:
    """What the user asked first."""
    said = [m["content"] for m in _messages(one) if m["role"] == "user"]
    return str(said[0]) if said else ""


def _answer(one: Trajectory) -> str:
    """What the last answer said."""
    said = [m.get("content") for m in _messages(one) if m["role"] == "assistant"]
    return str(said[-1] or "") if said else ""


def _messages(one: Trajectory) -> Sequence[Mapping[str, object]]:
    found: Sequence[Mapping[str, object]] = getattr(one.episode, "messages", ())
    return found
