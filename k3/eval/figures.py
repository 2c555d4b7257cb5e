"""Scores of answers become figures: a count, a mean and an interval."""

from collections.abc import Sequence
from dataclasses import dataclass

from k3.errors import RequestError
from k3.eval import metrics


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One number over `count` questions and its 95 % interval."""

    name: str
    count: int
    value: float
    low: float
    high: float


def share(name: str, values: Sequence[float]) -> Figure:
    """The mean of values from 0 to 1: Wilson's interval where all are 0 or 1."""
    total = sum(values)
    sure = all(value in (0.0, 1.0) for value in values)
    low, high = (
        metrics.wilson(total, len(values)) if sure else metrics.bootstrap(values)
    )
    return Figure(
        name=name, count=len(values), value=total / len(values), low=low, high=high
    )


def summarize(scores: Sequence[tuple[int, dict[str, float]]]) -> tuple[Figure, ...]:
    """A figure for every name; several samples of a question count once, as its mean.

    With n samples each figure `name` of zeros and ones also gives `name@k` for
    k = 2, 4, ..., n: the chance that one of k samples is right.
    Raises: RequestError without any answer.
    """
    if not scores:
        raise RequestError("figures need answers: got none; ask a question")
    found: list[Figure] = []
    for name in scores[0][1]:
        by_question: dict[int, list[float]] = {}
        for index, values in scores:
            by_question.setdefault(index, []).append(values[name])
        groups = list(by_question.values())
        found.append(share(name, [sum(g) / len(g) for g in groups]))
        found += _at(name, groups)
    return tuple(found)


def _at(name: str, groups: Sequence[Sequence[float]]) -> list[Figure]:
    count = min(map(len, groups))
    if any(value not in (0.0, 1.0) for group in groups for value in group):
        return []
    ks = [1 << power for power in range(1, count.bit_length()) if 1 << power <= count]
    return [
        share(
            f"{name}@{k}",
            [metrics.pass_at_k(len(group), round(sum(group)), k) for group in groups],
        )
        for k in ks
    ]
