"""The parser of answers: one for streams and for whole texts."""

import copy
from collections.abc import Iterable, Iterator
from typing import Literal, get_args

from k3.data.xtml import events, lex
from k3.data.xtml.calls import CallReader
from k3.data.xtml.events import Content, End, Event, Message, Problem, Reasoning
from k3.data.xtml.lex import CHANNELS, ELEMENTS, Piece

Start = Literal["think", "response", "message"]


class Parser:
    """Pieces of an answer in, events out; the same events whatever the cuts.

    A piece is text in which markers are searched, or (text, is_special) of a token:
    then text that spells a marker is text. It never raises for what a model wrote:
    slips are read as meant where that is clear, and reported as Problem.
    """

    def __init__(self, start_in: Start = "think") -> None:
        assert start_in in get_args(Start), start_in
        self._lexer = lex.Lexer()
        self._where: str = start_in
        self._unknown = ""
        self._call: CallReader | None = None
        self._calls = 0
        self._stray = False
        self._spaces: list[str] = []
        self._loose: list[str] = []

    @property
    def channel(self) -> str:
        """Where the next text goes: think, response, tools, message (between
        channels) or done.
        """
        return "response" if self._where == "unknown" else self._where

    @property
    def done(self) -> bool:
        """True once the message has been closed; what follows is not read."""
        return self._where == "done"

    def fork(self) -> "Parser":
        """An independent parser that has read the same."""
        return copy.deepcopy(self)

    def push(self, piece: Piece) -> list[Event]:
        """The events of the next piece."""
        found: list[Event] = []
        for item in self._lexer.push(piece):
            found += self._read(item)
        return found

    def finish(self, reason: events.Reason = "stop") -> list[Event]:
        """The last events. `stop` means that the model ended the message itself.

        After any other reason an open call stays incomplete, unless the message had
        been closed before.
        """
        assert reason in get_args(events.Reason), reason
        cut = reason != "stop" and not self.done
        found: list[Event] = []
        for item in self._lexer.close(cut):
            found += self._read(item)
        cut = cut and not self.done
        if cut:
            found += self._leave_text()
            found += [] if self._call is None else self._call.cut()
        else:
            found += self._end()
        return [*found, End(reason, complete=not cut)]

    def _read(self, item: lex.Item) -> Iterator[Event]:
        if self.done:
            return
        match item:
            case str():
                yield from self._text(item)
            case lex.Tag(closing=True):
                yield from self._close(item)
            case lex.Tag():
                yield from self._open(item)
            case lex.Broken(marker, source):
                yield Problem("not a tag", marker)
                yield from self._text(source)
            case lex.Cut(source):
                yield Problem("cut tag", source)
            case lex.Special(name):
                yield Problem("special token", name)
            case lex.EndMark():
                yield from self._end()

    def _text(self, text: str) -> Iterator[Event]:
        if self._call is not None:
            yield from self._call.text(text)
        elif self._where == "think":
            yield Reasoning(text)
        elif self._where == "tools":
            self._loose.append(text)
        elif self._where == "message":
            yield from self._between(text)
        else:
            yield Content(text)

    def _between(self, text: str) -> Iterator[Event]:
        """Text between channels is content, but for the space around it."""
        if not self._stray:
            text = text.lstrip()
        kept = text.rstrip()
        if kept:
            if not self._stray:
                yield Problem("stray text", "content")
            self._stray = True
            yield Content("".join(self._spaces) + kept)
            self._spaces = []
        if self._stray:
            self._spaces.append(text[len(kept) :])

    def _literal(self, tag: lex.Tag) -> Iterator[Event]:
        yield Problem("unknown element", tag.name)
        yield from self._text(tag.source)

    def _open(self, tag: lex.Tag) -> Iterator[Event]:
        if not tag.separated and tag.name in ELEMENTS:
            yield Problem("no separator", tag.name)
        if tag.name in CHANNELS:
            yield from self._enter(tag.name)
        elif tag.name == "call":
            yield from self._enter("tools")
            self._call = CallReader(self._calls, tag.attributes)
            # A call that is left out takes no place.
            self._calls += bool(self._call.name)
            yield from self._call.start()
        elif self._call is not None:
            if tag.name in ("argument", "json"):
                yield from self._call.open(tag.name, tag.attributes)
            else:
                yield from self._literal(tag)
        elif tag.name == "message":
            role = tag.attributes.get("role", "assistant")
            yield Problem("message tag", role)
            yield from self._end() if role != "assistant" else ()
        elif self._where == "message":
            self._leave_gap()
            self._where, self._unknown = "unknown", tag.name
            yield Problem("unknown element", tag.name)
        else:
            yield from self._literal(tag)

    def _close(self, tag: lex.Tag) -> Iterator[Event]:
        if not tag.separated and tag.name in ELEMENTS:
            yield Problem("no separator", tag.name)
        if self._call is not None and tag.name not in ("call", "tools", "message"):
            if tag.name in ("argument", "json"):
                yield from self._call.close(tag.name)
            else:
                yield from self._literal(tag)
        elif tag.name == "message":
            yield from self._end(closed=True)
        elif tag.name == "call" and self._call is not None:
            yield from self._call.end()
            self._call = None
        elif tag.name == self._open_channel():
            yield from self._leave(tag.name)
        elif tag.name in ELEMENTS or self._where in ("message", "tools"):
            yield Problem("stray close", tag.name)
        else:
            yield from self._literal(tag)

    def _open_channel(self) -> str:
        return self._unknown if self._where == "unknown" else self._where

    def _enter(self, channel: str) -> Iterator[Event]:
        """Opening a channel ends whatever is open; the same one goes on."""
        if self._where == channel:
            yield from self._leave_call()
            yield from self._leave_text()
            return
        yield from self._leave(closed="")
        self._where = channel

    def _leave(self, closed: str) -> Iterator[Event]:
        """To the place between channels; `closed` names the one closed by its tag."""
        yield from self._leave_call()
        yield from self._leave_text()
        channel = self._open_channel()
        if channel not in ("message", closed):
            yield Problem("unclosed", channel)
        self._where, self._unknown = "message", ""

    def _leave_call(self) -> Iterator[Event]:
        if self._call is not None:
            yield from self._call.end()
            yield Problem("unclosed", "call")
            self._call = None

    def _leave_text(self) -> Iterator[Event]:
        """Report text inside tools; forget the space around text between channels."""
        loose, self._loose = "".join(self._loose).strip(), []
        if loose:
            yield Problem("stray text", loose)
        self._leave_gap()

    def _leave_gap(self) -> None:
        self._stray, self._spaces = False, []

    def _end(self, closed: bool = False) -> Iterator[Event]:
        if self.done:
            return
        yield from self._leave(closed="")
        if not closed:
            yield Problem("unclosed", "message")
        self._where = "done"


def parse(
    pieces: str | Iterable[Piece],
    start_in: Start = "think",
    reason: events.Reason = "stop",
) -> Message:
    """The message of a whole answer: the streaming parser, fed in one go."""
    parser = Parser(start_in)
    found: list[Event] = []
    for piece in [pieces] if isinstance(pieces, str) else pieces:
        found += parser.push(piece)
    return events.assemble([*found, *parser.finish(reason)])
