"""What is shown of a conversation once it is over the rule."""

from hypothesis import given, settings
from hypothesis import strategies as st

from k3.data import xtml
from k3.envs.harness import Context, Harness, context

HEAD = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]


def talk(sizes):
    """Turns with a reasoning of 300 and a result of so many characters."""
    messages = list(HEAD)
    for turn, size in enumerate(sizes):
        call = {"name": "t", "arguments": '{"a": 1}'}
        messages += [
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "r" * 300,
                "reasoning": "r" * 300,
                "tool_calls": [
                    {"id": f"c{turn}", "type": "function", "function": call}
                ],
            },
            {"role": "tool", "tool_call_id": f"c{turn}", "content": "x" * size},
        ]
    return messages


def rule(**options):
    return Harness(name="own", context=Context(**options))


def thoughts(messages):
    return [bool(m.get("reasoning_content")) for m in messages if "tool_calls" in m]


def results(messages):
    return [m["content"] for m in messages if m["role"] == "tool"]


def test_nothing_is_dropped_under_the_limit():
    messages = talk([100, 200])
    assert context.shown(messages, rule(over=("results", "turns"))) == messages


def test_old_reasoning_always_goes_where_the_rule_says_so():
    found = context.shown(talk([5, 5, 5]), rule(always=("reasoning",)))
    assert thoughts(found) == [False, False, True]
    assert thoughts(context.shown(talk([5, 5, 5]), rule())) == [True] * 3


def test_results_go_the_oldest_first_and_only_as_many_as_need_be():
    made = rule(most_chars=3000, keep_turns=1, over=("results",))
    found = results(context.shown(talk([900] * 4), made))
    assert found[0] == "[a result of 900 characters, no longer shown]"
    assert found[-1] == "x" * 900
    assert [len(text) for text in found].count(900) == 1
    assert results(context.shown(talk([900, 900]), made)) == ["x" * 900] * 2


def test_reasoning_goes_before_results_in_the_order_of_the_rule():
    made = rule(most_chars=3500, keep_turns=1, over=("reasoning", "results"))
    found = context.shown(talk([900] * 3), made)
    assert thoughts(found) == [False, True, True]
    assert results(found) == ["x" * 900] * 3


def test_whole_turns_go_and_the_notes_are_shown_in_their_place():
    made = rule(most_chars=2000, keep_turns=1, over=("turns",))
    found = context.shown(talk([900] * 4), made, "NOTES.md:\nkado = 3")
    assert found[2]["content"] == (
        "[3 earlier turns are no longer shown]\n\nNOTES.md:\nkado = 3"
    )
    assert found[:2] == HEAD
    assert found[3:] == talk([900] * 4)[-2:]


def test_a_short_result_is_kept_as_it_is():
    made = rule(most_chars=1000, keep_turns=1, over=("results",))
    assert results(context.shown(talk([3, 900, 900]), made))[0] == "xxx"


@settings(max_examples=40)
@given(
    sizes=st.lists(st.integers(0, 2000), max_size=6),
    over=st.permutations(["reasoning", "results", "turns"]),
    most=st.integers(1000, 6000),
    keep=st.integers(1, 3),
)
def test_what_is_shown_is_a_conversation_and_shorter(sizes, over, most, keep):
    messages = talk(sizes)
    made = rule(most_chars=most, keep_turns=keep, over=tuple(over))
    found = context.shown(messages, made)
    assert found[:2] == HEAD
    assert (
        found[len(found) - 2 * min(keep, len(sizes)) :]
        == (messages[len(messages) - 2 * min(keep, len(sizes)) :])
    )
    assert context.shown(messages, made) == found
    xtml.render(found)
