"""Segments: the pieces of a prompt, each tokenized by itself (docs/wire-format.md).

Only what the renderer writes itself may become special tokens: the four markers and
the prompts of images. Tag names, attribute parts and every text are ordinary.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from k3.data.tokenizer import Tokenizer

OPEN = "<|open|>"
CLOSE = "<|close|>"
SEP = "<|sep|>"
END = "<|end_of_msg|>"
MARKERS = (OPEN, CLOSE, SEP, END)


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of text; `special` says that special names in it become special ids."""

    text: str
    special: bool = False


def escape(value: str) -> str:
    """An attribute's text: & first, then the quotation mark. Bodies stay as is."""
    return value.replace("&", "&amp;").replace('"', "&quot;")


def unescape(value: str) -> str:
    """The value that `escape` was given."""
    return value.replace("&quot;", '"').replace("&amp;", "&")


def text(body: str) -> Iterator[Segment]:
    """Ordinary text; nothing for an empty one."""
    if body:
        yield Segment(body)


def opening(tag: str, attributes: Mapping[str, str] | None = None) -> Iterator[Segment]:
    """`<|open|>tag key="value"<|sep|>`, each attribute in its four parts."""
    yield Segment(OPEN, special=True)
    yield Segment(tag)
    for key, value in (attributes or {}).items():
        yield Segment(f" {key}")
        yield Segment('="')
        yield from text(escape(value))
        yield Segment('"')
    yield Segment(SEP, special=True)


def closing(tag: str) -> Iterator[Segment]:
    """`<|close|>tag<|sep|>`."""
    yield Segment(CLOSE, special=True)
    yield Segment(tag)
    yield Segment(SEP, special=True)


def element(
    tag: str, attributes: Mapping[str, str], body: Iterable[Segment]
) -> Iterator[Segment]:
    """A tag opened, its body, the tag closed."""
    yield from opening(tag, attributes)
    yield from body
    yield from closing(tag)


def message(
    attributes: Mapping[str, str], body: Iterable[Segment]
) -> Iterator[Segment]:
    """A message element and the end-of-message marker."""
    yield from element("message", attributes, body)
    yield Segment(END, special=True)


def join(segments: Iterable[Segment]) -> str:
    """What the prompt reads like; not what is tokenized."""
    return "".join(segment.text for segment in segments)


def encode(segments: Iterable[Segment], tokenizer: Tokenizer) -> list[int]:
    """The ids of the segments, one by one.

    Raises: RequestError when the vocabulary lacks a marker.
    """
    ids: list[int] = []
    for segment in segments:
        if segment.special and segment.text in MARKERS:
            # By name: a vocabulary without the marker is refused, not spelled out.
            ids.append(tokenizer.special_id(segment.text))
        else:
            ids += tokenizer.encode(segment.text, allow_special=segment.special)
    return ids
