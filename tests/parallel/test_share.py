"""Shares of a packed row: every token once, and the ends that ranks need."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.errors import ShapeError
from k3.parallel import share

LENS = st.lists(st.integers(0, 9), min_size=1, max_size=8).map(tuple)


@settings(max_examples=60)
@given(LENS, st.integers(1, 6), st.sampled_from([None, 1, 3]))
def test_tails_are_the_document_before_a_share(lens, ranks, past):
    if sum(lens) < ranks:
        return
    document = [d for d, n in enumerate(lens) for _ in range(n)]
    parts = share.shares(lens, ranks)
    assert [t for p in parts for t in range(p.start, p.stop)] == [*range(sum(lens))]
    sent = [share.tails(parts, r, past)[0] for r in range(ranks)]
    for rank, part in enumerate(parts):
        assert sum(part.lens) == part.stop - part.start
        behind = [t for t in range(part.start) if document[t] == document[part.start]]
        assert part.before == len(behind)
        wanted = behind if past is None else behind[-past:]
        came = share.tails(parts, rank, past)[1]
        assert came == tuple(row[rank] for row in sent)
        got = [
            t
            for p, n in zip(parts, came, strict=True)
            for t in range(p.stop - n, p.stop)
        ]
        assert got == wanted
        assert part.through == (
            bool(behind) and len({*document[part.start : part.stop]}) == 1
        )


def test_more_ranks_than_tokens_are_refused():
    with pytest.raises(ShapeError, match="got 4 ranks for 3 tokens"):
        share.shares((1, 2), 4)
