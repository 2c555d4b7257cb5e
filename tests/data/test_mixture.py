"""Rows as a function of the step: shares, ranks, resuming."""

import collections

import pytest
import torch

from k3.data.examples import Example
from k3.data.mixture import Mixture
from k3.data.packing import PADDING
from k3.errors import RequestError

PAD = 9


class Counted:
    """Examples whose ids say which source and number they are of."""

    def __init__(self, domain, lengths, mark=0):
        self.domain, self.lengths, self.mark = domain, lengths, mark

    def example(self, index):
        length = self.lengths[index % len(self.lengths)]
        ids = torch.full((length,), index * 10 + self.mark)
        learned = torch.ones(length, dtype=torch.bool)
        learned[0] = False
        return Example(ids=ids, learned=learned, domain=self.domain)


class Filled(Counted):
    """A source that fills rows itself."""

    def row(self, index, tokens):
        return [self.example(index)] * (tokens // self.lengths[0])


def mixture(sources, weights=None, tokens=50, seed=3):
    weights = weights or [1.0] * len(sources)
    return Mixture(
        sources=sources, weights=weights, tokens=tokens, seed=seed, pad_id=PAD
    )


def same(a, b):
    fields = ("ids", "targets", "learned", "domains", "cu_seqlens")
    return all(torch.equal(getattr(a, f), getattr(b, f)) for f in fields)


TWO = [Counted("short", [3, 5, 4], 1), Counted("long", [20, 31], 2)]
ALL = [*TWO, Filled("own", [10], 3)]


def test_a_step_is_a_function_of_its_number():
    whole = [mixture(ALL).rows(step, 3) for step in range(5)]
    again = mixture(ALL).rows(4, 3)
    assert all(same(a, b) for a, b in zip(whole[4], again, strict=True))
    flat = [row for rows in whole for row in rows]
    assert all(not same(a, b) for a in flat for b in flat if a is not b)


@pytest.mark.parametrize("world", [1, 2, 3, 6])
def test_ranks_together_read_what_one_reads(world):
    mixed = mixture(ALL)
    one = mixed.rows(2, 6)
    parts = [mixed.rows(2, 6, rank, world) for rank in range(world)]
    assert sum(map(len, parts)) == 6
    for place, row in enumerate(one):
        assert same(row, parts[place % world][place // world])


def test_another_seed_draws_other_rows():
    assert not same(mixture(TWO).row(0), mixture(TWO, seed=4).row(0))


def test_a_row_source_counts_on_without_a_gap():
    mixed = mixture(ALL, [1, 1, 2])
    rows = [mixed.row(n) for n in range(40)]
    own = [int(row.ids[0, 0]) // 10 for row in rows if row.domains[0, 0] == 2]
    assert own == list(range(20))


def test_each_domain_gets_the_tokens_of_its_weight():
    mixed = mixture(ALL, [0.2, 0.5, 0.3], tokens=400)
    assert mixed.domains == ("short", "long", "own")
    tokens = collections.Counter()
    for n in range(60):
        tokens.update(mixed.row(n).domains[0].tolist())
    padding = tokens.pop(PADDING)
    assert padding < 0.05 * 60 * 400
    shares = [tokens[d] / sum(tokens.values()) for d in range(3)]
    assert shares == pytest.approx([0.2, 0.5, 0.3], abs=0.04)


def test_a_row_is_filled_until_nothing_fits():
    mixed = mixture([Counted("a", [7])], tokens=30)
    row = mixed.row(0)
    assert row.cu_seqlens.tolist() == [0, 7, 14, 21, 28, 30]


def test_an_example_longer_than_a_row_is_refused():
    with pytest.raises(RequestError, match="7 tokens of 6; raise tokens"):
        mixture([Counted("a", [7])], tokens=6).row(0)


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, float("nan")]])
def test_weights_are_positive_and_one_for_each_source(weights):
    with pytest.raises(RequestError, match="one positive weight for each source"):
        mixture(TWO, weights)


def test_there_is_something_to_mix():
    with pytest.raises(RequestError, match="for 0 sources"):
        Mixture(sources=[], weights=[], tokens=5, seed=0, pad_id=0)


def test_a_row_has_a_token_and_its_target():
    with pytest.raises(RequestError, match="tokens=1"):
        mixture(TWO, tokens=1)


@pytest.mark.parametrize("where", [(-1, 2, 0, 1), (0, 2, 2, 2), (0, 2, 0, 3), (0, 0)])
def test_a_rank_without_rows_is_refused(where):
    with pytest.raises(RequestError, match="gives each rank a row"):
        mixture(TWO).rows(*where)
