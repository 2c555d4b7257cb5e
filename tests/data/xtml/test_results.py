"""Results: order, index and tool, whatever became of the ids."""

import itertools

import pytest

from k3.data.xtml import results
from k3.errors import RequestError


def asked(*calls):
    made = [{"id": i, "type": "function", "function": {"name": n}} for i, n in calls]
    return {"role": "assistant", "content": "", "tool_calls": made}


def result(call_id=None, **rest):
    found = {"role": "tool", "content": f"of {call_id}", **rest}
    return found if call_id is None else {**found, "tool_call_id": call_id}


def shown(*messages):
    turns = results.ordered(messages)
    return [
        (turn.place, turn.tool, turn.index)
        for turn in turns
        if turn.message["role"] == "tool"
    ]


def test_a_run_is_sorted_by_its_calls():
    calls = asked(("a", "f"), ("b", "g"), ("c", "h"))
    for order in itertools.permutations("abc"):
        found = shown(calls, *(result(name) for name in order))
        assert [(tool, index) for _, tool, index in found] == [
            ("f", 1),
            ("g", 2),
            ("h", 3),
        ]
        assert [order[place - 1] for place, _, _ in found] == ["a", "b", "c"]


def test_the_name_of_the_call_wins():
    assert shown(asked(("a", "f")), result("a", name="other")) == [(1, "f", 1)]


def test_a_run_with_a_stranger_keeps_its_order():
    calls = asked(("a", "f"), ("b", "g"))
    found = shown(calls, result("b", name="B"), result("x"))
    # Unsorted: the own name counts, and without one the call in that place.
    assert found == [(1, "B", 1), (2, "g", 2)]


def test_indices_restart_after_an_assistant_message_only():
    user = {"role": "user", "content": "x"}
    messages = [asked(("a", "f"), ("b", "g")), result("a"), user, result("b")]
    again = [asked(("c", "h")), result("c")]
    assert shown(*messages, *again) == [(1, "f", 1), (3, "g", 2), (5, "h", 1)]


def test_only_the_latest_calls_count():
    messages = [asked(("a", "f")), result("a"), asked(("b", "g")), result("a")]
    assert shown(*messages) == [(1, "f", 1), (3, "g", 1)]


def test_a_partial_run_is_numbered_by_its_own_places():
    assert shown(asked(("a", "f"), ("b", "g")), result("b")) == [(1, "g", 1)]


@pytest.mark.parametrize(
    ("ids", "answers"),
    [
        (["functions.f:0", "functions.g:1"], ["functions.g:1", "functions.f:0"]),
        (["call_abc", "call_xyz"], ["call_xyz", "call_abc"]),
        (["functions.f:0", "functions.g:1"], ["functions_g_1", "functions_f_0"]),
        (["functions_f_0", "functions_g_1"], ["functions.g:1", "functions.f:0"]),
    ],
)
def test_report_26_ids_of_every_kind_name_the_function(ids, answers):
    calls = asked((ids[0], "f"), (ids[1], "g"))
    found = shown(calls, *(result(answer) for answer in answers))
    assert found == [(2, "f", 1), (1, "g", 2)]


def test_report_26_duplicated_ids_are_dealt_out_in_order():
    calls = asked(("x", "f"), ("x", "g"))
    assert shown(calls, result("x"), result("x")) == [(1, "f", 1), (2, "g", 2)]
    assert shown(asked(("x", "f")), result("x"), result("x")) == [
        (1, "f", 1),
        (2, "f", 2),
    ]


def test_report_26_missing_ids_go_by_place():
    calls = asked((None, "f"), (None, "g"))
    assert shown(calls, result(), result()) == [(1, "f", 1), (2, "g", 2)]
    assert shown(calls, result("a"), result("b")) == [(1, "f", 1), (2, "g", 2)]


def test_a_result_without_a_call_is_refused():
    with pytest.raises(RequestError) as caught:
        results.ordered([{"role": "user"}, result("a")])
    assert str(caught.value) == (
        "messages[1].tool_call_id must be the id of a call in the assistant message "
        "before it: got 'a' for result 1 of 0 calls; send the assistant message with "
        "its tool_calls, or name the tool in `name`"
    )


def test_a_named_result_needs_no_call():
    assert shown(result("a", name="f"), result("b", tool="g")) == [
        (0, "f", 1),
        (1, "g", 2),
    ]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("f", r"messages\[0\]\.tool_calls\[0\] must be an object: got 'f'"),
        ({"type": "custom"}, r"tool_calls\[0\]\.type must be one of function"),
        ({"function": {}}, r"tool_calls\[0\]\.function\.name must be a string"),
        ({"function": "f"}, r"tool_calls\[0\]\.function must be an object"),
        ({"id": 3, "name": "f"}, r"tool_calls\[0\]\.id must be a string: got 3"),
    ],
)
def test_wrong_calls_are_refused(call, sentence):
    with pytest.raises(RequestError, match=sentence):
        results.ordered([{"role": "assistant", "tool_calls": [call]}])


def test_a_wrong_id_of_a_result_is_refused():
    with pytest.raises(RequestError, match=r"messages\[1\]\.tool_call_id must be a st"):
        results.ordered([asked(("a", "f")), result(7)])


def test_calls_that_are_no_list_are_refused():
    with pytest.raises(RequestError, match=r"\[0\]\.tool_calls must be a list: got an"):
        results.ordered([{"role": "assistant", "tool_calls": {}}])
