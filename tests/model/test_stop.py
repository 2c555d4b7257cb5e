"""k3.model.stop: no part of a stop string is ever passed on."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from k3.model.stop import StopText


def shown(stops, pieces):
    text = StopText(stops)
    return "".join(map(text.push, pieces)) + text.flush(), text.found


def test_text_before_the_stop_is_shown_and_nothing_after():
    assert shown(["END"], ["abcEN", "Dxyz", "more"]) == ("abc", True)


def test_what_might_become_a_stop_is_held_until_it_cannot():
    text = StopText(["END"])
    assert text.push("aE") == "a"
    assert text.push("N") == ""
    assert text.push("x") == "ENx"
    assert not text.found


def test_the_held_start_of_a_stop_is_shown_at_the_end():
    assert shown(["END"], ["abEN"]) == ("abEN", False)


def test_the_earliest_of_several_stops_wins():
    assert shown(["yy", "b"], ["aby", "yc"]) == ("a", True)


def test_the_stop_that_is_complete_first_counts_in_one_piece_as_in_many():
    assert shown(["a", "bab"], ["bbab"]) == ("bb", True)
    assert shown(["a", "bab"], list("bbab")) == ("bb", True)


def test_without_stops_text_passes_at_once():
    text = StopText([])
    assert text.push("anything") == "anything"


@given(
    st.text("ab", max_size=30),
    st.lists(st.text("ab", min_size=1, max_size=4), max_size=3),
    st.lists(st.integers(0, 30), max_size=8),
)
def test_pieces_show_the_same_as_the_whole(text, stops, cuts):
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(edges)]
    ends = [
        (text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop in text
    ]
    expected = text[: min(ends)[1]] if ends else text
    assert shown(stops, pieces) == (expected, bool(ends))
