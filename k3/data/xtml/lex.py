"""From pieces of an answer to texts, tags and ends, whatever the cuts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from k3.data.tokenizer import Tokenizer
from k3.data.xtml.segments import CLOSE, END, MARKERS, OPEN, SEP
from k3.data.xtml.tag import TagText

Piece: TypeAlias = str | tuple[str, bool]
CHANNELS = ("think", "response", "tools")
ELEMENTS = (*CHANNELS, "message", "call", "argument", "json")
_MARKER = re.compile("|".join(map(re.escape, MARKERS)))


@dataclass(frozen=True, slots=True)
class Tag:
    """A whole tag; `separated` is False where <|sep|> was missing."""

    closing: bool
    name: str
    attributes: dict[str, str]
    separated: bool
    source: str


@dataclass(frozen=True, slots=True)
class Broken:
    """Text that began like a tag, or a marker out of place."""

    marker: str
    source: str


@dataclass(frozen=True, slots=True)
class Cut:
    """The answer was cut inside a tag."""

    source: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special token that is no marker."""

    name: str


@dataclass(frozen=True, slots=True)
class EndMark:
    """<|end_of_msg|>."""


Item: TypeAlias = str | Tag | Broken | Cut | Special | EndMark


class Lexer:
    """Pieces in, items out.

    A piece is text in which markers are searched, or (text, is_special) of a token:
    then only special tokens are markers.
    """

    def __init__(self) -> None:
        self._held = ""
        self._tag: TagText | None = None

    def push(self, piece: Piece) -> Iterator[Item]:
        """The items that the piece completes."""
        if isinstance(piece, str):
            yield from self._scan(piece)
            return
        text, special = piece
        yield from self._release()
        if special and text not in MARKERS:
            yield from self._break()
            yield Special(text)
        else:
            yield from self._take(text, special)

    def close(self, cut: bool) -> Iterator[Item]:
        """What was held back, a tag without its end among it.

        In an answer that was cut, only a closing tag with a known name is whole.
        """
        if self._tag is not None and cut:
            # What waits here would have been the marker that ends the tag.
            held, self._held = self._held, ""
            if not self._closes(self._tag):
                yield Cut(self._tag.source + held)
                self._tag = None
        yield from self._release()
        yield from self._break()

    def _closes(self, tag: TagText) -> bool:
        return tag.marker == CLOSE and tag.complete and tag.name in ELEMENTS

    def _scan(self, text: str) -> Iterator[Item]:
        text = self._held + text
        place = 0
        for match in _MARKER.finditer(text):
            yield from self._take(text[place : match.start()], False)
            yield from self._take(match.group(), True)
            place = match.end()
        # Only what may still become a marker waits; it starts at the last "<".
        start = text.rfind("<", place)
        partial = start >= 0 and any(m.startswith(text[start:]) for m in MARKERS)
        stop = start if partial else len(text)
        self._held = text[stop:]
        yield from self._take(text[place:stop], False)

    def _release(self) -> Iterator[Item]:
        held, self._held = self._held, ""
        yield from self._take(held, False)

    def _take(self, text: str, marker: bool) -> Iterator[Item]:
        if marker:
            yield from self._mark(text)
        elif text and self._tag is None:
            yield text
        elif text and self._tag is not None and not self._tag.feed(text):
            tag, self._tag = self._tag, None
            yield Broken(tag.marker, tag.source)

    def _mark(self, marker: str) -> Iterator[Item]:
        if marker == SEP and self._tag is not None and self._tag.complete:
            tag, self._tag = self._tag, None
            yield _built(tag, separated=True)
            return
        yield from self._break()
        if marker == END:
            yield EndMark()
        elif marker == SEP:
            yield Broken(SEP, SEP)
        else:
            self._tag = TagText(marker)

    def _break(self) -> Iterator[Item]:
        tag, self._tag = self._tag, None
        if tag is None:
            return
        if tag.complete:
            yield _built(tag, separated=False)
        else:
            yield Broken(tag.marker, tag.source)


class Pieces:
    """Token ids to (text, is_special), never half a character."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = tokenizer.stream()

    def push(self, token_id: int) -> list[tuple[str, bool]]:
        """The pieces that the id completes, possibly none."""
        if not self._tokenizer.is_special(token_id):
            text = self._decoder.push(token_id)
            return [(text, False)] if text else []
        name = self._tokenizer.token_bytes(token_id).decode()
        return [*self.flush(), (name, True)]

    def flush(self) -> list[tuple[str, bool]]:
        """The mark for an unfinished character, if there is one."""
        text = self._decoder.flush()
        return [(text, False)] if text else []


def _built(tag: TagText, separated: bool) -> Tag:
    source = tag.source + (SEP if separated else "")
    return Tag(tag.marker != OPEN, tag.name, tag.attributes, separated, source)
