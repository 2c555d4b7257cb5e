from hypothesis import given, settings
from hypothesis import strategies as st

from k3.spec import cache


def registry(tokens, pages, groups):
    return cache.Registry(
        frozenset(tuple(tokens[:end]) for end in pages),
        tuple(frozenset(tuple(tokens[:end]) for end in group) for group in groups),
    )


def test_restore_at_2560_of_2800():
    tokens = list(range(2800))
    ends = range(512, 2801, 512)
    full = registry(tokens, ends, [ends, ends])
    assert cache.matched(full, tokens, 6144) == 2560
    assert cache.lookup(full, tokens, 6144) == 2560 == cache.longest(full, tokens)
    sibling = registry(tokens, ends, [ends, [512, 1024]])
    assert cache.lookup(sibling, tokens, 6144) == 1024
    assert cache.lookup(registry(tokens, ends, [ends, []]), tokens, 6144) == 0


@settings(deadline=None)
@given(st.data())
def test_two_stages_find_the_longest(data):
    length = data.draw(st.integers(0, 13))
    tokens = data.draw(st.lists(st.integers(0, 1), min_size=length, max_size=length))
    held = data.draw(st.integers(0, length // 2)) * 2
    ends = range(2, held + 1, 2)
    groups = [data.draw(st.lists(st.sampled_from([2, 4, 6, 8, 10]))) for _ in range(2)]
    made = registry(
        tokens, ends, [[g for g in group if g <= length] for group in groups]
    )
    asked = tokens[: data.draw(st.integers(0, length))] + data.draw(
        st.lists(st.integers(0, 1), max_size=4)
    )
    for physical in (2, 4, 6):
        found = cache.lookup(made, asked, physical, 2)
        assert found == cache.longest(made, asked, 2)
        assert cache.restorable(made, asked, found, 2)
        assert found % 2 == 0
