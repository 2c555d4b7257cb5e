"""Examples: what is in the context, and what of it is learned."""

import pytest
import torch

from k3.data import media, xtml
from k3.data.corpora import Document
from k3.data.examples import Example, of_conversation, of_text
from k3.data.images import pillow
from k3.data.limits import ImageLimits
from k3.data.tokenizer import Tokenizer
from k3.data.xtml import RenderOptions
from k3.errors import RequestError, ShapeError

SMALL = ImageLimits(patch_size=4)
IMAGE = {"type": "image_url", "image_url": {"url": "x"}}
SEEN = [
    {"role": "user", "content": ["Which?", IMAGE, "and", IMAGE]},
    {"role": "assistant", "content": "One and two."},
]
SEEN[0]["content"] = [
    part if isinstance(part, dict) else {"type": "text", "text": part}
    for part in SEEN[0]["content"]
]


def picture(width, height):
    return pillow().new("RGB", (width, height), (250, 3, 9))


def learned_text(example, tokenizer):
    return tokenizer.decode(example.ids[example.learned])


def test_a_text_stands_between_two_end_tokens(byte_tokenizer):
    example = of_text(Document(name="d", text="aé"), byte_tokenizer, "prose")
    end = byte_tokenizer.eos_id
    assert example.ids.tolist() == [end, 0x61, 0xC3, 0xA9, end]
    assert example.learned.tolist() == [False, True, True, True, True]
    assert (example.domain, example.name, len(example)) == ("prose", "d", 5)
    assert len(of_text(Document(name="e", text=""), byte_tokenizer, "prose")) == 2


def test_a_special_name_in_a_text_stays_text(byte_tokenizer):
    example = of_text(Document(name="d", text="[EOS]"), byte_tokenizer, "prose")
    assert len(example) == 7


def test_the_ids_of_a_conversation_are_those_the_server_sees(tokenizer):
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo."}]
    example = of_conversation(talk, tokenizer, "chat", name="n")
    whole = RenderOptions(add_generation_prompt=False)
    assert example.ids.tolist() == xtml.render(talk, whole).encode(tokenizer)
    prompt = xtml.render(talk[:1]).encode(tokenizer)
    assert example.ids[: len(prompt)].tolist() == prompt
    assert example.learned.tolist() == [
        place >= len(prompt) for place in range(len(example))
    ]
    assert (example.domain, example.name) == ("chat", "n")


@pytest.mark.parametrize("effort", ["low", "high", "max", None])
def test_the_effort_is_told_and_not_learned(tokenizer, effort):
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo."}]
    wanted = RenderOptions(thinking_effort=effort)
    example = of_conversation(talk, tokenizer, "chat", wanted=wanted)
    assert (f"thinking_effort={effort}" in tokenizer.decode(example.ids)) == bool(
        effort
    )
    assert "effort" not in learned_text(example, tokenizer)


def test_what_one_answer_is_asked_for_stands_before_it(tokenizer):
    tool = {"type": "function", "function": {"name": "f"}}
    call = {"function": {"name": "f", "arguments": "{}"}}
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo."}]
    talk += [
        {"role": "user", "content": "Call"},
        {"role": "assistant", "tool_calls": [call]},
    ]
    wanted = RenderOptions(tools=[tool], tool_choice="required")
    example = of_conversation(talk, tokenizer, "tools", wanted=wanted)
    prompt = xtml.render(talk[:3], wanted).encode(tokenizer)
    assert example.ids[: len(prompt)].tolist() == prompt
    assert example.learned[len(prompt) :].all()
    assert "tool_choice" not in learned_text(example, tokenizer)
    told = of_conversation(talk[:1], tokenizer, "tools", wanted=wanted)
    assert not told.learned.any()
    text = tokenizer.decode(told.ids)
    assert text.index("<|sep|>Hi<|close|>") < text.index("tool_choice=required")


def test_placeholders_grow_to_the_rows_of_their_images(tokenizer):
    sizes = [(8, 8), (20, 9)]
    pictures = [picture(*size) for size in sizes]
    example = of_conversation(SEEN, tokenizer, "sight", pictures=pictures, limits=SMALL)
    pad = tokenizer.special_id("<|media_pad|>")
    here = example.ids == pad
    assert int(here.sum()) == sum(SMALL.num_tokens(*size) for size in sizes) == 1 + 6
    assert not example.learned[here].any()
    patches, grids = media.preprocess_all(pictures, SMALL)
    assert torch.equal(example.pixels, torch.from_numpy(patches))
    assert torch.equal(example.grids, torch.from_numpy(grids))
    assert learned_text(example, tokenizer).count("One and two.") == 1
    text = tokenizer.decode(example.ids)
    assert f"image 20x9<|media_content|>{'<|media_pad|>' * 6}<|media_end|>" in text


@pytest.mark.parametrize("count", [0, 1, 3])
def test_each_image_part_has_its_picture(tokenizer, count):
    with pytest.raises(RequestError, match=f"got {count} for 2 parts"):
        of_conversation(
            SEEN, tokenizer, "sight", pictures=[picture(8, 8)] * count, limits=SMALL
        )


def test_an_open_message_is_no_example(tokenizer):
    wanted = RenderOptions(continue_final_message=True)
    with pytest.raises(RequestError, match="must be False in training"):
        of_conversation(SEEN, tokenizer, "chat", wanted=wanted)


def test_a_vocabulary_without_markers_is_refused(ranks):
    plain = Tokenizer(ranks, {})
    with pytest.raises(RequestError, match=r"<\|open\|>"):
        of_conversation([{"role": "user", "content": "Hi"}], plain, "chat")


def flags(*values):
    return torch.tensor(values, dtype=torch.bool)


@pytest.mark.parametrize(
    ("ids", "learned", "told"),
    [
        ([1, 2], flags(0), r"got ids \[2\] and learned \[1\]"),
        ([], flags(), "got 0 tokens"),
        ([1, 2], flags(1, 1), "the first one learned"),
    ],
)
def test_what_is_no_example_is_refused(ids, learned, told):
    ids = torch.tensor(ids, dtype=torch.long)
    with pytest.raises(ShapeError, match=told):
        Example(ids=ids, learned=learned, domain="d")


def test_pixels_come_with_grids():
    ids = torch.tensor([1])
    with pytest.raises(ShapeError, match="pixels and grids come together"):
        Example(ids=ids, learned=flags(0), domain="d", pixels=torch.zeros(1, 3, 4, 4))
