"""Tool dialogues: a question, the call in XTML, its result, the answer.

Operands are single digits and keys are made-up words: what carries over to longer
numbers and to several documents is left for post-training to teach.
"""

import json
from typing import Any

from k3.data.tasks import dialogue, words
from k3.data.tasks.item import Dialogue
from k3.data.tasks.lot import Lot

OPERATIONS = {"+": "plus", "-": "minus", "*": "times"}


def _tool(name: str, words: str, properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    function = {"name": name, "description": words, "parameters": parameters}
    return {"type": "function", "function": function}


CALCULATOR = _tool(
    "calculator",
    "Compute a op b.",
    {
        "a": {"type": "number"},
        "op": {"type": "string", "enum": list(OPERATIONS)},
        "b": {"type": "number"},
    },
)
LOOKUP = _tool("lookup", "Value of a key.", {"key": {"type": "string"}})
TOOLS = (CALCULATOR, LOOKUP)


def draw(lot: Lot) -> Dialogue:
    """One question that needs one of the tools; one or both are declared."""
    rng, chosen = lot.rng, lot.rng.choice((_sum, _key))
    tool, question, arguments, result, answer = chosen(lot)
    others = [t for t in TOOLS if t is not tool]
    tools = [tool, *(t for t in others if rng.random() < 0.5)]
    rng.shuffle(tools)
    name = tool["function"]["name"]
    call = {"name": name, "arguments": json.dumps(arguments)}
    return Dialogue(
        messages=[
            dialogue.user(question),
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "1", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": "1", "content": result},
            dialogue.assistant(answer),
        ],
        tools=tools,
        effort=dialogue.effort(rng),
    )


_Asked = tuple[dict[str, Any], str, dict[str, Any], str, str]


def _sum(lot: Lot) -> _Asked:
    rng = lot.rng
    while True:
        a, op, b = rng.randint(0, 9), rng.choice(list(OPERATIONS)), rng.randint(0, 9)
        if lot.keeps(f"sum:{a}{op}{b}"):
            break
    words = rng.choice((f"{a} {op} {b}", f"{a} {OPERATIONS[op]} {b}"))
    question = rng.choice((f"What is {words}?", f"Compute {words}.", f"{words} = ?"))
    result = str({"+": a + b, "-": a - b, "*": a * b}[op])
    arguments = {"a": a, "op": op, "b": b}
    return CALCULATOR, question, arguments, result, f"It is {result}."


def _key(lot: Lot) -> _Asked:
    rng = lot.rng
    while True:
        key = words.word(rng)
        if lot.keeps(f"key:{key}"):
            break
    question = rng.choice(
        (f"What is the value of {key}?", f"Look up {key}.", f"Find {key}.")
    )
    result = words.word(rng)
    return LOOKUP, question, {"key": key}, result, f"It is {result}."
