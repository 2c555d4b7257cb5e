"""Answers as models give them, well formed and not, and the ways to cut them."""

import pytest

from k3.data import xtml

CALLS = (
    '<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>'
    '<|open|>argument key="city" type="string"<|sep|>Zürich "West"\n\\<|close|>'
    'argument<|sep|><|open|>argument key="days" type="number"<|sep|>3<|close|>argument'
    '<|sep|><|close|>call<|sep|><|open|>call tool="a.b-c" index="2"<|sep|><|open|>'
    'argument key="q&amp;&quot;" type="object"<|sep|>{"k": [1, null]}<|close|>argument'
    "<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"
)
END = "<|close|>message<|sep|><|end_of_msg|>"

ANSWERS = {
    "plain": "I see.<|close|>think<|sep|><|open|>response<|sep|>A < B<|close|>response"
    f"<|sep|>{END}",
    "calls": "Call it.<|close|>think<|sep|><|open|>response<|sep|><|close|>response"
    f"<|sep|>{CALLS}{END}",
    "no think-close": f"Call it.{CALLS}{END}",
    "no closes": "w<|open|>response<|sep|>x<|open|>tools<|sep|><|open|>call tool="
    '"f"<|sep|><|open|>argument key="a" type="string"<|sep|>1<|open|>argument key="b" '
    'type="array"<|sep|>[2]<|close|>call<|sep|>',
    "between": "w<|close|>think<|sep|>\n\n Well \n then\n<|open|>response<|sep|> x "
    f"<|close|>response<|sep|>\n{END}trailing rubbish",
    "unknown": "w<|close|>think<|sep|><|open|>final<|sep|>x<|open|>b<|sep|>y<|close|>"
    f"final<|sep|>{END}",
    "markup": "a <|open|>b c <|sep|> d <|close|>5 <|open|><|open|>think<|sep|>e<|clo"
    "<|open|>response<|sep|><|open|>response<|sep|>f<|close|>think<|sep|>g",
    "bad values": '<|open|>call tool="f" index="7"<|sep|><|open|>argument key="n" type='
    '"number"<|sep|>three<|close|>argument<|sep|><|open|>argument key="m" type="number"'
    '<|sep|>"3"<|close|>argument<|sep|><|open|>argument key="u" type="integer"<|sep|> 4'
    ' <|close|>argument<|sep|><|open|>argument key="v"<|sep|>five<|close|>argument'
    '<|sep|><|open|>argument type="string"<|sep|>lost<|close|>argument<|sep|><|open|>'
    'argument key="n" type="string"<|sep|>twice<|close|>argument<|sep|> stray <|close|>'
    "call<|sep|>",
    "json bodies": '<|open|>tools<|sep|> no <|open|>call tool="f" index="1"<|sep|>'
    '<|open|>json type="object"<|sep|>{"a": {"}": 1}}<|close|>json<|sep|><|close|>call'
    '<|sep|><|open|>call tool="g" index="2"<|sep|>{"a": 1}\n<|close|>call<|sep|>'
    '<|open|>call tool="h" index="3"<|sep|><|open|>json type="object"<|sep|>{oops'
    '<|close|>json<|sep|><|close|>call<|sep|><|open|>call index="4"<|sep|>[1]'
    '<|close|>call<|sep|><|open|>call tool="i" index="4"<|sep|>[1]<|close|>call<|sep|>',
    "no separators": 'w<|close|>think<|open|>response<|sep|>x<|close|>response<|open|>'
    'tools<|open|>call tool="f" index="1"<|close|>call<|close|>tools<|end_of_msg|>',
    "next turn": 'w<|open|>response<|sep|>x<|open|>message role="assistant"<|sep|>y'
    '<|open|>message role="user"<|sep|>hello',
    "ends in a tag": f"w<|close|>think<|sep|>{CALLS[:-7]}",
}  # fmt: skip


def joined(events):
    """Events with neighbouring pieces of text put together: what no cut may change."""
    found = []
    for event in events:
        last = found[-1] if found else None
        if not hasattr(event, "text") or type(last) is not type(event):
            found.append(event)
        elif isinstance(event, xtml.CallArguments):
            same = last.index == event.index
            text = last.text + event.text
            new = [xtml.CallArguments(event.index, text)] if same else [last, event]
            found[-1:] = new
        else:
            found[-1] = type(event)(last.text + event.text)
    return found


def read(pieces, start_in="think", reason="stop"):
    """All events of an answer that comes in these pieces."""
    parser = xtml.Parser(start_in)
    found = []
    for piece in pieces:
        found += parser.push(piece)
    return [*found, *parser.finish(reason)]


@pytest.fixture(scope="session")
def answers():
    return ANSWERS


@pytest.fixture(scope="session")
def read_events():
    return read


@pytest.fixture(scope="session")
def join_events():
    return joined
