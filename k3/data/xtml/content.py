"""Content: text, or a list of text and image parts."""

from collections.abc import Iterator, Sequence
from typing import Any

from k3.data.xtml import check, segments
from k3.data.xtml.segments import Segment
from k3.errors import RequestError

PLACEHOLDER = "<|kimi_image_placeholder|>"
MEDIA = ("image", "image_url", "video", "video_url")


class Media:
    """The prompts of the images (and clips) of a request, dealt out in order.

    Without prompts (None) every part stays as the placeholder, ordinary text. A text
    that spells the placeholder, or any special token, is text.
    """

    def __init__(self, prompts: Sequence[str] | None) -> None:
        self._prompts = prompts
        self._parts = 0

    def take(self) -> Segment:
        """The segment of the next part."""
        self._parts += 1
        if self._prompts is None:
            return Segment(PLACEHOLDER)
        if self._parts > len(self._prompts):
            # The count is wrong; `finish` says by how much.
            return Segment("")
        return Segment(self._prompts[self._parts - 1], special=True)

    def finish(self) -> None:
        """Every prompt must have had its part.

        Raises: RequestError.
        """
        if self._prompts is not None and self._parts != len(self._prompts):
            raise RequestError(
                "images must be one prompt per image part of the messages: got "
                f"{len(self._prompts)} for {self._parts} parts; add or remove images"
            )


def body(content: Any, path: str, media: Media) -> Iterator[Segment]:
    """The segments of a content field; parts follow each other without a separator.

    Raises: RequestError.
    """
    if content is None:
        return
    if isinstance(content, str):
        yield from segments.text(content)
        return
    if not isinstance(content, Sequence):
        raise check.refuse(path, "text or a list of parts", content, "send text")
    for index, part in enumerate(content):
        yield from _part(part, f"{path}[{index}]", media)


def _part(part: Any, path: str, media: Media) -> Iterator[Segment]:
    kind = check.mapping(part, path).get("type")
    if kind == "text":
        yield from segments.text(check.string(part.get("text"), f"{path}.text"))
        return
    remedy = "send text or an image"
    check.one_of(kind, f"{path}.type", ("text", *MEDIA), remedy)
    yield media.take()


def is_blank(content: Any) -> bool:
    """True for null, empty text and a list without parts that show anything."""
    if isinstance(content, (list, tuple)):
        return all(isinstance(p, dict) and p.get("text") == "" for p in content)
    return not content
