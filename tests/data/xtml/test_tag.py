"""One tag, character by character."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3.data.xtml import segments, tag


def fed(text, size=None):
    found = tag.TagText("<|open|>")
    step = size or max(len(text), 1)
    for start in range(0, len(text), step):
        if not found.feed(text[start : start + step]):
            return None
    return found


@pytest.mark.parametrize("size", [None, 1, 3])
@pytest.mark.parametrize(
    ("text", "name", "attributes"),
    [
        ("think", "think", {}),
        ("think ", "think", {}),
        ('call tool="f"', "call", {"tool": "f"}),
        ('call  tool="a b"\n index="1" ', "call", {"tool": "a b", "index": "1"}),
        ('argument key=""', "argument", {"key": ""}),
        ('a k="&amp;&quot;&lt;"', "a", {"k": '&"&lt;'}),
        ('a k="1" k="2"', "a", {"k": "1"}),
    ],
)
def test_whole_tags(text, name, attributes, size):
    found = fed(text, size)
    assert found.complete
    assert (found.name, found.attributes) == (name, attributes)
    assert found.source == "<|open|>" + text


@pytest.mark.parametrize("text", ["", "call tool", "call tool=", 'call tool="f'])
def test_unfinished_tags(text):
    found = fed(text)
    assert found is not None
    assert not found.complete


@pytest.mark.parametrize(
    "text",
    [" think", "5 < 6 ", "a, b", "call tool=f", 'c k="1"l="2"', "a b c", "x" * 33],
)
def test_what_is_no_tag_is_refused_at_once(text):
    assert fed(text) is None
    assert fed(text, 1) is None


def test_a_tag_has_a_limit():
    assert fed('call tool="' + "x" * tag.LIMIT) is None
    assert fed('call tool="' + "x" * 60_000 + '"').complete


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["tool", "key", "type"]), st.text()))
def test_what_is_rendered_is_read(attributes):
    text = segments.join(list(segments.opening("call", attributes))[1:-1])
    found = fed(text, 2)
    assert found.complete
    assert found.attributes == attributes
