"""Ratings of competitors from comparisons: win rates and Elo with intervals.

A table W holds, for each question, the share of comparisons that i won over j; ties
are half to each. Questions are drawn anew for the intervals, so that all comparisons
of a question stay together.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from k3.errors import RequestError

Table = NDArray[np.float64]
"""[questions, competitors, competitors]"""

ANCHOR = 1000.0
SCALE = 400 / math.log(10)
PRIOR = 0.5
"""Of a tie between each two: so who has won or lost everything has a rating too."""
STEPS = 500
PRECISE = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class Rating:
    """A competitor's Elo and win rate against all others, with 95 % intervals."""

    name: str
    elo: float
    elo_low: float
    elo_high: float
    wins: float
    wins_low: float
    wins_high: float


def rate(
    names: Sequence[str], table: Table, *, draws: int = 1000, seed: int = 0
) -> list[Rating]:
    """A rating for each competitor, in their order. Raises: RequestError."""
    count = len(names)
    if count < 2 or table.shape[1:] != (count, count) or not len(table):
        raise RequestError(
            "ratings need two competitors and a question that they share: got "
            f"{count} competitors and {len(table)} questions"
        )
    whole = table.sum(0)
    rng = np.random.default_rng(seed)
    times = rng.multinomial(len(table), np.full(len(table), 1 / len(table)), draws)
    drawn = np.tensordot(times, table, 1)
    elos, rates = elo(np.concatenate([whole[None], drawn])), win_rate(whole)
    elo_bounds = np.quantile(elos[1:], (0.025, 0.975), axis=0)
    rate_bounds = np.quantile(win_rate(drawn), (0.025, 0.975), axis=0)
    return [
        Rating(
            name=name,
            elo=float(elos[0, i]),
            elo_low=float(elo_bounds[0, i]),
            elo_high=float(elo_bounds[1, i]),
            wins=float(rates[i]),
            wins_low=float(rate_bounds[0, i]),
            wins_high=float(rate_bounds[1, i]),
        )
        for i, name in enumerate(names)
    ]


def win_rate(wins: Table) -> Table:
    """Share of its comparisons that each has won, a tie half: [..., n, n] to [..., n].

    One half where there was none.
    """
    won, lost = wins.sum(-1), wins.sum(-2)
    games = won + lost
    return np.where(games > 0, won / np.where(games > 0, games, 1), 0.5)


def elo(wins: Table) -> Table:
    """Bradley-Terry strengths as Elo, their mean 1000: [..., n, n] to [..., n].

    Newton's steps up the likelihood, which is concave; the iteration of Hunter 2004,
    section 2, has the same end, but is hundreds of points from it after 500 steps
    where three competitors never tie. Each two are given half a tie beforehand.
    """
    count = wins.shape[-1]
    held = wins + PRIOR / 2 * (1 - np.eye(count))
    games = held + held.swapaxes(-1, -2)
    won = held.sum(-1)
    theta = np.zeros(wins.shape[:-1])
    for _ in range(STEPS):
        chance = 0.5 + 0.5 * np.tanh((theta[..., :, None] - theta[..., None, :]) / 2)
        slope = won - (games * chance).sum(-1)
        bend = games * chance * (1 - chance)
        # The mean stays: along it the likelihood is flat, so it is given a bend.
        curve = np.eye(count) * bend.sum(-1)[..., None] - bend + bend.mean()
        step = np.linalg.solve(curve, slope[..., None])[..., 0]
        most = np.abs(step).max(-1, keepdims=True)
        theta = theta + step / np.maximum(most, 1.0)
        if most.max() < PRECISE:
            break
    else:
        raise AssertionError("a concave likelihood has been climbed")
    return ANCHOR + SCALE * (theta - theta.mean(-1, keepdims=True))
