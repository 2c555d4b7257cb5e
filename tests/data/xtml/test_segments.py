"""Segments and their ids: only markers and image prompts may be special."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.data import media
from k3.data.tokenizer import Tokenizer
from k3.data.xtml import segments
from k3.data.xtml.segments import CLOSE, END, OPEN, SEP, Segment
from k3.errors import RequestError


def test_a_tag_is_markers_and_ordinary_parts():
    found = list(segments.opening("message", {"role": "user", "name": 'a&"b'}))
    assert found == [
        Segment(OPEN, special=True),
        Segment("message"),
        *[Segment(" role"), Segment('="'), Segment("user"), Segment('"')],
        *[Segment(" name"), Segment('="'), Segment("a&amp;&quot;b"), Segment('"')],
        Segment(SEP, special=True),
    ]


def test_a_message_ends_with_its_marker():
    found = list(segments.message({}, segments.text("x")))
    assert segments.join(found) == (
        "<|open|>message<|sep|>x<|close|>message<|sep|><|end_of_msg|>"
    )
    assert [s.text for s in found if s.special] == [OPEN, SEP, CLOSE, SEP, END]


def test_empty_text_and_empty_values_make_no_segment():
    assert list(segments.text("")) == []
    found = list(segments.opening("argument", {"key": ""}))
    assert all(segment.text for segment in found)
    assert segments.join(found) == '<|open|>argument key=""<|sep|>'


def test_escaping_is_ampersand_first():
    assert segments.escape('a & "b" &quot;') == "a &amp; &quot;b&quot; &amp;quot;"


@settings(deadline=None)
@given(st.text())
def test_unescaping_is_the_inverse(value):
    assert segments.unescape(segments.escape(value)) == value


@settings(deadline=None)
@given(st.text())
def test_an_escaped_value_holds_no_quotation_mark(value):
    assert '"' not in segments.escape(value)


def test_segments_are_tokenized_one_by_one(tokenizer):
    pieces = [Segment("the"), Segment("re")]
    assert segments.encode(pieces, tokenizer) == [
        *tokenizer.encode("the"),
        *tokenizer.encode("re"),
    ]
    # In one piece the words join, so the split can be seen.
    assert segments.encode([Segment("self")], tokenizer) != segments.encode(
        [Segment("se"), Segment("lf")], tokenizer
    )


def test_markers_become_their_ids_and_text_does_not(tokenizer):
    special = segments.encode([Segment(OPEN, special=True)], tokenizer)
    assert special == [tokenizer.special_id(OPEN)]
    ordinary = segments.encode([Segment(OPEN)], tokenizer)
    assert not any(tokenizer.is_special(i) for i in ordinary)
    assert tokenizer.decode(ordinary) == OPEN


def test_an_image_prompt_holds_four_special_ids(tokenizer):
    ids = segments.encode([Segment(media.prompt_text(30, 20), special=True)], tokenizer)
    names = [tokenizer.decode([i]) for i in ids if tokenizer.is_special(i)]
    assert names == [
        "<|media_begin|>",
        "<|media_content|>",
        "<|media_pad|>",
        "<|media_end|>",
    ]
    assert tokenizer.decode(ids) == media.prompt_text(30, 20)


def test_a_vocabulary_without_the_markers_is_refused(ranks):
    bare = Tokenizer(ranks, {})
    with pytest.raises(RequestError, match=r"one of the vocabulary: got '<\|open\|>'"):
        segments.encode([Segment(OPEN, special=True)], bare)
