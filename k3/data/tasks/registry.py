"""Every task by the name of its domain."""

from collections.abc import Iterable

from k3.data.tasks import (
    chat,
    copy,
    digits,
    evidence,
    glyphs,
    needle,
    places,
    recall,
    sums,
    svg,
    tools,
)
from k3.data.tasks.item import Draw, Task
from k3.data.tasks.lot import Lot, Split
from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError

DRAWS: dict[str, Draw] = {
    "chat": chat.draw,
    "copy": copy.draw,
    "digits": digits.draw,
    "evidence": evidence.draw,
    "glyphs": glyphs.draw,
    "needle": needle.draw,
    "places": places.draw,
    "recall": recall.draw,
    "sums": sums.draw,
    "svg": svg.draw,
    "tools": tools.draw,
}


def named(name: str, tokenizer: Tokenizer, split: Split = "train") -> Task:
    """The task of this name, as a source of examples in a tokenizer's ids.

    Raises: RequestError.
    """
    if name not in DRAWS:
        raise RequestError(
            f"a task is one of {', '.join(DRAWS)}: got {name!r}; choose one"
        )
    return Task(domain=name, draw=DRAWS[name], tokenizer=tokenizer, split=split)


def texts(names: Iterable[str], count: int = 60) -> list[str]:
    """Texts of the first draws of these tasks: what a vocabulary sees beside prose.

    So few that they take few places, and enough that the words of XTML are tokens.
    """
    return [
        text
        for name in names
        for index in range(count)
        for text in DRAWS[name](Lot.of(name, "train", index)).texts()
    ]
