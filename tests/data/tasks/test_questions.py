"""The tasks' own rules: sixteen pairs, valid calls, splits that do not meet."""

import json

import numpy as np
import pytest

from k3.data.tasks import chat, digits, recall, tools
from k3.data.tasks.lot import Lot


def drawn(task, side, count=300):
    return [task.draw(Lot.of("x", side, index)) for index in range(count)]


def test_recall_asks_each_of_sixteen_pairs_once():
    (passage,) = drawn(recall, "heldout", 1)
    told = passage.parts[0][0].removeprefix("Pairs: ").removesuffix("\nAsked:")
    table = dict(told.split())
    assert len(table) == len(set(table.values())) == 16
    asked = [text.strip() for text, learned in passage.parts[1:] if not learned]
    given = [text for text, learned in passage.parts if learned]
    assert sorted(asked) == sorted(table)
    assert given == [table[key] for key in asked]


def test_digits_are_all_there_and_split_by_their_place():
    ink, labels = digits.table()
    assert ink.shape == (1797, 8, 8)
    assert ink.max() == 16
    assert np.bincount(labels).min() == 174
    train, held = (set(digits.places(side)) for side in ("train", "heldout"))
    assert not train & held
    assert len(train | held) == 1797
    assert 300 < len(held) < 400


def test_a_digits_picture_holds_its_ink_wherever_it_is_put():
    centre, corner = digits.picture(5), digits.picture(5, 0, 4)
    assert centre.size == corner.size == (28, 28)
    assert np.asarray(centre).sum() == np.asarray(corner).sum() > 0
    assert np.array_equal(np.asarray(centre)[2:26, 2:26], np.asarray(corner)[4:, :24])


@pytest.mark.parametrize("side", ["train", "heldout"])
def test_a_call_names_a_declared_tool_and_gives_its_arguments(side):
    for item in drawn(tools, side):
        (call,) = item.messages[1]["tool_calls"]
        (tool,) = (
            t["function"]
            for t in item.tools
            if t["function"]["name"] == call["function"]["name"]
        )
        arguments = json.loads(call["function"]["arguments"])
        assert list(arguments) == tool["parameters"]["required"]
        assert item.messages[2]["content"] in item.messages[3]["content"]


@pytest.mark.parametrize(
    ("task", "key"),
    [
        (chat, lambda item: item.messages[0]["content"]),
        (
            tools,
            lambda item: item.messages[1]["tool_calls"][0]["function"]["arguments"],
        ),
    ],
)
def test_no_heldout_question_is_trained_on(task, key):
    train, held = ({key(i) for i in drawn(task, s)} for s in ("train", "heldout"))
    assert not train & held
    assert len(held) > 30


def test_every_fact_is_short_and_asked_in_three_wordings():
    assert len(chat.FACTS) > 100
    assert all(answer and " " not in answer for _, _, answer in chat.FACTS)
    assert all(len(wordings) >= 3 for wordings in chat._WORDINGS.values())


def test_every_heldout_digit_has_its_turn():
    kept = digits.places("heldout")
    seen = [item.messages[1]["content"] for item in drawn(digits, "heldout", len(kept))]
    assert seen == [str(label) for label in digits.table()[1][list(kept)]]
