"""serve's index and spec.cache find the same boundary on any registry."""

from hypothesis import given, settings
from hypothesis import strategies as st

from k3.serve import keys
from k3.serve.entries import Snapshot
from k3.serve.index import PrefixIndex
from k3.serve.pages import Pages
from k3.spec import cache


def chain(tokens, unit):
    return keys.Chain(keys.root(), unit).extend(tokens)


def index_of(block_ends, groups):
    sizes = {"block_ends": block_ends, "block_pages": 1}
    return PrefixIndex(Pages(200), **sizes, group_pages=(1,) * groups)


def fill(index, tokens, unit, ends, groups):
    """Commit rows up to the last of `ends`; put checkpoints into each group alone."""
    made = chain(tokens, unit)
    index.commit(index.schedule(made.keys[: len(ends)], snapshot=False))
    for number, (group, wanted) in enumerate(zip(index.groups, groups, strict=True)):
        for end in wanted:
            key = made.keys[end // unit - 1]
            group[key] = Snapshot(key, number, index.pages.allocate(1))
            index.lru[group[key]] = None
    rows = frozenset(tuple(tokens[:end]) for end in ends)
    parts = (frozenset(tuple(tokens[:end]) for end in wanted) for wanted in groups)
    return cache.Registry(rows, tuple(parts))


def test_restore_at_2560_of_2800():
    tokens = list(range(2800))
    ends = list(range(512, 2801, 512))
    for groups, want in (
        ([ends, ends], 2560),
        ([ends, [512, 1024]], 1024),
        ([ends, []], 0),
    ):
        index = index_of(12, 2)
        registry = fill(index, tokens, 512, ends, groups)
        assert index.find(chain(tokens, 512).keys) * 512 == want
        assert cache.lookup(registry, tokens, 6144) == want
        assert len(index.ends) == 5
        assert len({id(b) for held in index.ends.values() for b in held}) == 1


class OneGroupIsAsked(PrefixIndex):
    def _everywhere(self, key):
        return key in self.groups[0]


def test_an_index_that_asks_one_group_differs():
    index = OneGroupIsAsked(Pages(20), block_ends=12, block_pages=1, group_pages=(1, 1))
    tokens = list(range(2800))
    ends = list(range(512, 2801, 512))
    registry = fill(index, tokens, 512, ends, [ends, [512]])
    assert cache.lookup(registry, tokens, 6144) == 512
    assert index.find(chain(tokens, 512).keys) * 512 == 2560


@settings(deadline=None)
@given(st.data())
def test_index_and_spec_find_the_same(data):
    """Groups may differ here: a checkpoint counts only where every group has one."""
    block_ends = data.draw(st.integers(1, 4))
    tokens = data.draw(st.lists(st.integers(0, 1), min_size=16, max_size=16))
    ends = list(range(2, 2 * data.draw(st.integers(0, 8)) + 1, 2))
    some = st.sets(st.sampled_from(ends)) if ends else st.just(set())
    groups = [sorted(data.draw(some)) for _ in range(data.draw(st.integers(1, 3)))]
    index = index_of(block_ends, len(groups))
    registry = fill(index, tokens, 2, ends, groups)
    asked = tokens[: data.draw(st.integers(0, 16))]
    asked += data.draw(st.lists(st.integers(0, 1), max_size=4))
    made = chain(asked, 2)
    assert index.matched(made.keys) * 2 == cache.matched(
        registry, asked, 2 * block_ends, 2
    )
    found = index.find(made.keys) * 2
    assert found == cache.lookup(registry, asked, 2 * block_ends, 2)
    assert found == cache.longest(registry, asked, 2)
    hit = index.lookup(made.keys)
    assert len(hit.blocks) == -(-hit.reached // block_ends)
    assert all(entry.pins == 1 for entry in (*hit.blocks, *hit.snapshots))
