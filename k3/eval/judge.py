"""What an answer scores: one or several figures from 0 to 1 each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from k3.data import xtml
from k3.data.tasks import Dialogue, Item, Question
from k3.data.tokenizer import Tokenizer
from k3.eval import calls, metrics
from k3.model.generate import Completion

Scores = dict[str, float]


class Asked(Protocol):
    """What a judge needs of a question."""

    @property
    def answer(self) -> str:
        """The one that is wanted."""

    @property
    def item(self) -> Item:
        """The draw that it is of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the model wrote: its text, and the message where it is XTML."""

    text: str
    message: xtml.Message | None

    @property
    def content(self) -> str:
        """The response channel, or all of a plain text."""
        return self.text if self.message is None else self.message.content or ""


def read(completion: Completion, question: Question, tokenizer: Tokenizer) -> Answer:
    """The completion as text, and parsed where the question is a dialogue."""
    text = tokenizer.decode(completion.ids)
    if question.start_in is None:
        return Answer(text=completion.text, message=None)
    pieces = [(tokenizer.decode([i]), tokenizer.is_special(i)) for i in completion.ids]
    reason: Any = completion.finish
    message = xtml.parse(pieces, question.start_in, reason)
    return Answer(text=text, message=message)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question as far as a judge needs it."""

    answer: str
    item: Item


def exact(answer: Answer, question: Asked) -> Scores:
    """`right` where the content is the wanted one, space around it aside."""
    return {"right": metrics.exact_match(answer.content, question.answer)}


def words(answer: Answer, question: Asked) -> Scores:
    """`right`, and F1 over the words."""
    return exact(answer, question) | {"f1": metrics.f1(answer.content, question.answer)}


def call(answer: Answer, question: Asked) -> Scores:
    """`valid`: calls in the right format; `right`: the wanted calls."""
    assert isinstance(question.item, Dialogue), "calls are made in dialogues"
    assert answer.message is not None, "a dialogue's answer is XTML"
    item, message = question.item, answer.message
    first = next(m for m in item.messages if m["role"] == "assistant")
    valid = calls.valid(message, item.tools)
    right = valid and calls.given(message) == calls.asked(first["tool_calls"])
    return {"valid": float(valid), "right": float(right)}


JUDGES: dict[str, Callable[[Answer, Asked], Scores]] = {
    "exact": exact,
    "words": words,
    "call": call,
}
