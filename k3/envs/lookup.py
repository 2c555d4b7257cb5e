"""Key lookup over three documents that give the same keys other values.

Keys and values are numbers: their digits are the same tokens wherever they stand.
"""

from collections.abc import Mapping
from typing import Any

from k3.data.tasks.lot import Lot, Split
from k3.envs.question import Arguments, Question

DOMAIN = "lookup"
NAMES = ("A", "B", "C")
KEYS = 4
"""Keys of each document."""

WORDINGS = (
    "What is the value of {key} in {name}?",
    "Look up {key} in {name}.",
    "Find {key} in {name}.",
)
TOOL = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "Value of a key in a document.",
        "parameters": {
            "type": "object",
            "properties": {
                "document": {"type": "string", "enum": list(NAMES)},
                "key": {"type": "string"},
            },
            "required": ["document", "key"],
            "additionalProperties": False,
        },
    },
}

Documents = Mapping[str, Mapping[str, str]]


def make(split: Split, index: int) -> Question:
    """The question of this index of a split."""
    return draw(Lot.of(DOMAIN, split, index))


def draw(lot: Lot) -> Question:
    """Three documents, and the value of a key of the lot's split in one of them."""
    while True:
        keys = [str(key) for key in lot.rng.sample(range(100, 1000), KEYS)]
        if lot.keeps(f"lookup:{keys[0]}"):
            break
    values = map(str, lot.rng.sample(range(10, 100), KEYS * len(NAMES)))
    documents = {name: {key: next(values) for key in keys} for name in NAMES}
    name = lot.rng.choice(NAMES)
    wording = lot.rng.choice(WORDINGS)

    def run(arguments: Arguments) -> str:
        return value(documents, arguments)

    return Question(
        text=wording.format(key=keys[0], name=name),
        tool=TOOL,
        needed={"document": name, "key": keys[0]},
        run=run,
    )


def value(documents: Documents, arguments: Arguments) -> str:
    """What a document says of a key. Raises: ValueError where it says nothing."""
    if set(arguments) != {"document", "key"}:
        raise ValueError("lookup takes document and key")
    name, key = _text(arguments["document"]), _text(arguments["key"])
    if name not in documents:
        raise ValueError(f"document is one of {', '.join(documents)}")
    if key not in documents[name]:
        raise ValueError("no such key")
    return documents[name][key]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
