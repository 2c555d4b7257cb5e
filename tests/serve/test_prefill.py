"""Where the passes of a prefill end."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from k3.serve import CacheOptions
from k3.serve.prefill import chunk_ends


def test_where_passes_end():
    options = CacheOptions(hash_tokens=16, block_tokens=32, chunk_tokens=32)
    assert chunk_ends(0, 64, options) == [32, 48, 64]
    assert chunk_ends(48, 70, options) == [64, 70]
    assert chunk_ends(0, 5, options) == [5]


@given(st.integers(1, 400), st.integers(1, 4), st.data())
def test_passes_cover_the_rest_and_stop_where_a_repeat_can_go_on(tokens, chunk, data):
    options = CacheOptions(hash_tokens=16, block_tokens=32, chunk_tokens=16 * chunk)
    start = 16 * data.draw(st.integers(0, (tokens - 1) // 16))
    ends = chunk_ends(start, tokens, options)
    assert ends[-1] == tokens
    assert all(a < b <= a + 16 * chunk for a, b in pairwise([start, *ends]))
    assert all(end % 16 == 0 for end in ends[:-1])
    last = (tokens - 1) // 16 * 16
    assert last in (start, *ends)
