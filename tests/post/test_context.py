"""Context policies: what they take away, and what always stays."""

import pytest

from k3.errors import RequestError
from k3.post import context


def conversation(turns):
    found = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
    for turn in range(turns):
        found += [
            {"role": "assistant", "content": f"a{turn}"},
            {"role": "tool", "content": f"r{turn}.0"},
            {"role": "tool", "content": f"r{turn}.1"},
        ]
    return found


def contents(messages):
    return None if messages is None else " ".join(m["content"] for m in messages)


def test_the_end_takes_nothing_away():
    assert context.named("end")(conversation(3), 2) is None


def test_the_oldest_turn_goes_whole_and_the_last_stays():
    drop = context.named("drop_oldest")
    once = drop(conversation(3), 2)
    assert contents(once) == "S U a1 r1.0 r1.1 a2 r2.0 r2.1"
    assert contents(drop(once, 2)) == "S U a2 r2.0 r2.1"
    assert drop(drop(once, 2), 2) is None
    assert drop(conversation(0), 2) is None


def test_results_are_hidden_one_by_one_but_the_last_turns():
    hide = context.named("hide_results")
    messages, seen = conversation(2), []
    while (shorter := hide(messages, 2)) is not None:
        seen.append(contents(shorter))
        messages = shorter
    gone = context.HIDDEN
    assert seen == [
        f"S U a0 {gone} r0.1 a1 r1.0 r1.1",
        f"S U a0 {gone} {gone} a1 r1.0 r1.1",
    ]
    assert messages[2:4] == [
        {"role": "assistant", "content": "a0"},
        {"role": "tool", "content": gone},
    ]


@pytest.mark.parametrize("name", ["drop_oldest", "hide_results"])
def test_an_answer_of_the_opening_is_no_turn(name):
    opening = conversation(1)
    assert context.named(name)(opening, len(opening)) is None


def test_an_unknown_policy_is_refused():
    with pytest.raises(RequestError, match="end, drop_oldest, hide_results: got 'ref"):
        context.named("refuse")
