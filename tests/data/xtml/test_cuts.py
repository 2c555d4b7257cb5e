"""Answers cut anywhere, from text and from tokens; long bodies."""

import itertools
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.data import xtml
from k3.data.xtml import parse

NAMES = (
    "plain",
    "calls",
    "no think-close",
    "no closes",
    "between",
    "unknown",
    "markup",
    "bad values",
    "json bodies",
    "no separators",
    "next turn",
    "ends in a tag",
)
REASONS = ("stop", "stop_text", "length", "abort")
MARKER = re.compile(r"(<\|(?:open|close|sep|end_of_msg)\|>)")


def tokens(text):
    """The answer as tokens: markers special, the rest one character each."""
    parts = MARKER.split(text)
    return [
        piece
        for number, part in enumerate(parts)
        for piece in ([(part, True)] if number % 2 else [(c, False) for c in part])
    ]


def test_every_example_is_named(answers):
    assert tuple(answers) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_report_2_report_10_report_20_any_two_pieces_are_the_whole(
    name, answers, read_events, join_events
):
    text = answers[name]
    for reason in REASONS:
        whole = join_events(read_events([text], reason=reason))
        assert join_events(read_events(list(text), reason=reason)) == whole
    ends = ("stop", "length")
    wholes = [join_events(read_events([text], reason=reason)) for reason in ends]
    for place in range(len(text)):
        # Every place once, the ends in turn.
        cut = read_events([text[:place], text[place:]], reason=ends[place % 2])
        assert join_events(cut) == wholes[place % 2]


@pytest.mark.parametrize("name", NAMES)
def test_report_2_tokens_read_as_text_does(name, answers, read_events, join_events):
    text = answers[name]
    whole = join_events(read_events([text]))
    assert join_events(read_events(tokens(text))) == whole


@pytest.mark.parametrize("name", NAMES)
def test_report_10_every_beginning_streams_as_it_reads(name, answers, join_events):
    text = answers[name]
    parser, found = xtml.Parser("think"), []
    for stop, char in enumerate(text, 1):
        found += parser.push(char)
        reason = ("stop", "length")[stop % 2]
        whole = xtml.Parser("think")
        events = [*whole.push(text[:stop]), *whole.finish(reason)]
        # The fork ends here; the parser itself reads on.
        streamed = [*found, *parser.fork().finish(reason)]
        assert join_events(streamed) == join_events(events)


MARKS = ("<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", "<|", "|>", "<")
ELEMENTS = ("think", "response", "tools", "message", "call", "argument", "json", "x")
PARTS = st.sampled_from(
    [
        *MARKS,
        *ELEMENTS,
        *(f"<|open|>{name}<|sep|>" for name in ELEMENTS),
        *(f"<|close|>{name}<|sep|>" for name in ELEMENTS),
        '<|open|>call tool="f" index="1"<|sep|>',
        '<|open|>argument key="a" type="string"<|sep|>',
        '<|open|>argument key="b" type="number"<|sep|>',
        *(' key="', '"', " ", "\n", "1", "{", "}", "[1]", "\\", "é", "😀"),
    ]
)
ANYTHING = st.lists(PARTS | st.text(max_size=3), max_size=25).map("".join)
STARTS = st.sampled_from(["think", "response", "message"])


@settings(max_examples=100, deadline=None)
@given(ANYTHING, st.lists(st.integers(0, 200)), STARTS, st.sampled_from(REASONS))
def test_report_10_anything_cut_anywhere_is_the_whole(
    read_events, join_events, text, cuts, start, reason
):
    whole = join_events(read_events([text], start, reason))
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(places)]
    assert join_events(read_events(pieces, start, reason)) == whole
    assert join_events(read_events(list(text), start, reason)) == whole
    assert xtml.assemble(whole) == parse(text, start, reason)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=60), st.lists(PARTS, max_size=5))
def test_report_10_any_bytes_from_the_tokenizer(
    byte_tokenizer, read_events, join_events, raw, parts
):
    ids = [*raw, *byte_tokenizer.encode("".join(parts), allow_special=True), *raw]
    pieces = xtml.Pieces(byte_tokenizer)
    stream = [piece for i in ids for piece in pieces.push(i)] + pieces.flush()
    whole = byte_tokenizer.decode(raw)
    assert join_events(read_events(stream))[-1].reason == "stop"
    assert "".join(text for text, _ in stream).startswith(whole[:-1])


@settings(max_examples=100, deadline=None)
@given(ANYTHING, st.sampled_from(REASONS))
def test_what_was_parsed_can_be_sent_back(text, reason):
    found = parse(text, "think", reason)
    rendered = xtml.render([{"role": "user", "content": "x"}, found.to_dict()])
    assert rendered.text


@settings(max_examples=100, deadline=None)
@given(ANYTHING)
def test_problems_and_calls_are_well_formed(text):
    found = parse(text)
    assert {problem.kind for problem in found.problems} <= set(xtml.PROBLEMS)
    assert all(call.name for call in found.tool_calls)


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        ("", "word "),
        ("<|open|>response<|sep|>", "\n"),
        ('<|open|>call tool="f"<|sep|><|open|>argument key="a" type="string"', 'é"'),
        ('<|open|>call tool="f"<|sep|><|open|>argument key="a" type="array"', "1, "),
        ('<|open|>call tool="f"<|sep|>', "{"),
        ("<|close|>think<|sep|>", " "),
        ("<|close|>think<|sep|>x", " "),
        ("<|open|>tools<|sep|>", "text "),
        ("", "<|open|>x"),
        ("", "<|open|>think<|sep|>"),
    ],
)
def test_long_bodies_take_linear_time(head, unit):
    def seconds(units):
        parser = xtml.Parser("think")
        parser.push(head + ("<|sep|>" if "argument" in head else ""))
        start = time.process_time()
        for _ in range(units):
            parser.push(unit)
        parser.finish("length")
        return time.process_time() - start

    seconds(100)
    once = min(seconds(500) for _ in range(2))
    assert min(seconds(2_000) for _ in range(2)) < 4 * once * 2.5
