"""Prefix lookup: the logic's functions are the spec's, and find the longest hit."""

import random

import pytest

from k3.logic.falsify import call
from k3.proof import cache, cache_search
from k3.spec import cache as spec

BLOCK = 2


def registry(rng, request, groups, *, closed):
    """Random pages and checkpoints of the prefixes of a request."""
    ends = [tuple(request[:e]) for e in range(BLOCK, len(request) + 1, BLOCK)]
    pages = {e for e in ends if rng.random() < 0.8}
    if closed:
        pages = set(ends[: rng.randrange(len(ends) + 1)])
    held = tuple(
        frozenset(e for e in ends if rng.random() < 0.6) for _ in range(groups)
    )
    return spec.Registry(frozenset(pages), held)


def logic_inputs(table, request):
    """The same as functions of a hash block's number."""
    pages = table.pages.__contains__
    groups = tuple(g.__contains__ for g in table.checkpoints)
    return [pages, groups, lambda j: tuple(request[: j * BLOCK])]


def cases(size, *, closed):
    for seed in range(60):
        rng = random.Random(f"{seed} {size}")
        request = [rng.randrange(3) for _ in range(size)]
        table = registry(rng, request, rng.randrange(4), closed=closed)
        yield rng, request, table, logic_inputs(table, request)


@pytest.mark.parametrize("size", [3, 9, 20])
def test_longest_is_that_of_the_spec(size):
    for _, request, table, inputs in cases(size, closed=False):
        found = call(cache.LONGEST, [*inputs, size // BLOCK]) * BLOCK
        assert found == spec.longest(table, request, BLOCK)
        for j in range(size // BLOCK + 1):
            at = spec.restorable(table, request, j * BLOCK, BLOCK)
            assert call(cache.RESTORABLE, [*inputs, j]) == at
            assert not at or j * BLOCK <= found
        assert spec.restorable(table, request, found, BLOCK)


@pytest.mark.parametrize("size", [3, 9, 20])
def test_the_two_stage_search_is_that_of_the_spec(size):
    for rng, request, table, inputs in cases(size, closed=False):
        k = rng.randrange(1, 4)
        found = call(cache_search.LOOKUP, [*inputs, k, size // BLOCK]) * BLOCK
        assert found == spec.lookup(table, request, k * BLOCK, BLOCK)


@pytest.mark.parametrize("size", [3, 9, 20])
def test_with_closed_pages_it_finds_the_longest(size):
    for rng, request, table, _ in cases(size, closed=True):
        found = spec.lookup(table, request, rng.randrange(1, 4) * BLOCK, BLOCK)
        assert found == spec.longest(table, request, BLOCK)


def test_2800_matched_tokens_resume_at_2560():
    request = [0] * 2800
    ends = frozenset(tuple(request[:e]) for e in spec.boundaries(2800) if e)
    table = spec.Registry(ends, (ends, ends))
    assert spec.longest(table, request) == 2560
    assert spec.lookup(table, request, 6144) == 2560
