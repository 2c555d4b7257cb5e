"""Content parts and the prompts of images."""

import pytest

from k3.data import media
from k3.data.xtml import content, segments
from k3.data.xtml.content import PLACEHOLDER, Media
from k3.data.xtml.segments import Segment
from k3.errors import RequestError

PROMPTS = [media.prompt_text(28, 28), media.prompt_text(56, 28)]


def text(words):
    return {"type": "text", "text": words}


def image(url="data:"):
    return {"type": "image_url", "image_url": {"url": url}}


def shown(found, prompts=()):
    dealer = Media(prompts)
    pieces = list(content.body(found, "messages[0].content", dealer))
    dealer.finish()
    return pieces


def test_text_and_parts_follow_each_other():
    assert shown("a") == [Segment("a")]
    assert shown([text("a"), text(""), text("b")]) == [Segment("a"), Segment("b")]
    assert shown(None) == shown("") == shown([]) == []


def test_images_take_their_prompts_in_order():
    found = shown([text("a"), image(), text("b"), {"type": "image"}], PROMPTS)
    assert found == [
        Segment("a"),
        Segment(PROMPTS[0], special=True),
        Segment("b"),
        Segment(PROMPTS[1], special=True),
    ]


def test_without_prompts_the_placeholder_stays_as_text():
    assert shown([image()], None) == [Segment(PLACEHOLDER)]


@pytest.mark.parametrize("prompts", [[], PROMPTS])
def test_a_prompt_too_few_or_too_many_is_refused(prompts):
    with pytest.raises(RequestError) as caught:
        shown([image()], prompts)
    assert str(caught.value) == (
        "images must be one prompt per image part of the messages: got "
        f"{len(prompts)} for 1 parts; add or remove images"
    )


@pytest.mark.parametrize("words", [PLACEHOLDER, PROMPTS[0], "<|media_pad|>"])
def test_report_13_text_that_spells_an_image_is_text(words, tokenizer):
    found = shown(words)
    assert found == [Segment(words)]
    ids = segments.encode(found, tokenizer)
    assert not any(tokenizer.is_special(i) for i in ids)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (3, r"messages\[0\]\.content must be text or a list of parts: got 3; send te"),
        ({}, r"messages\[0\]\.content must be text or a list of parts: got an object"),
        (["a"], r"messages\[0\]\.content\[0\] must be an object: got 'a'"),
        ([{}], r"content\[0\]\.type must be one of text, image, .*: got null"),
        ([text("a"), {"type": "audio"}], r"content\[1\]\.type must be .*: got 'audio'"),
        ([text(None)], r"content\[0\]\.text must be a string: got null; send text"),
    ],
)
def test_wrong_content_is_refused(found, sentence):
    with pytest.raises(RequestError, match=sentence):
        shown(found)


def test_blank_content():
    assert content.is_blank(None)
    assert content.is_blank("")
    assert content.is_blank([text("")])
    assert not content.is_blank(" ")
    assert not content.is_blank([image()])
