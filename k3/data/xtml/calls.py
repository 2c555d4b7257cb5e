"""One tool call being read: its arguments become JSON text as they come."""

import json
from collections.abc import Iterator, Mapping

from k3.data.xtml import values
from k3.data.xtml.events import CallArguments, CallEnd, CallStart, Event, Problem
from k3.errors import RequestError

# Under this key goes JSON that is not an object, which no tool can take.
LOOSE_KEY = "json"


class CallReader:
    """Strings stream; other values wait for their end, for they may not be JSON.

    A call without a name is read and left out.
    """

    def __init__(self, index: int, attributes: Mapping[str, str]) -> None:
        self.index = index
        self.name = attributes.get("tool", "")
        self.inside: str | None = None
        self._place = attributes.get("index")
        self._keys: set[str] = set()
        self._key: str | None = None
        self._type = ""
        self._parts: list[str] = []
        self._json: list[str] | None = None
        self._loose: list[str] = []

    def start(self) -> Iterator[Event]:
        """The call's name, or why it has none."""
        if not self.name:
            yield Problem("no tool", f"call {self.index + 1}")
            return
        yield CallStart(self.index, self.name)
        if self._place != str(self.index + 1):
            yield Problem("index", f"{self._place} for call {self.index + 1}")

    def open(self, element: str, attributes: Mapping[str, str]) -> Iterator[Event]:
        """An argument or json element begins; one still open ends."""
        yield from self.close(element, reopened=True)
        self.inside = element
        if element == "json":
            self._json = self._json or []
            return
        key = attributes.get("key")
        if key is None or key in self._keys:
            yield Problem("no key" if key is None else "duplicate key", key or "")
            self._key = None
            return
        opening = ", " if self._keys else "{"
        self._keys.add(key)
        self._key, self._type = key, attributes.get("type", "")
        quote = '"' if self._type == "string" else ""
        yield from self._out(f"{opening}{_quoted(key)}: {quote}")

    def text(self, text: str) -> Iterator[Event]:
        """More of whatever is open."""
        if self.inside is None:
            self._loose.append(text)
        elif self.inside == "json":
            assert self._json is not None
            self._json.append(text)
        elif self._key is not None and self._type == "string":
            yield from self._out(_quoted(text)[1:-1])
        elif self._key is not None:
            self._parts.append(text)

    def close(self, element: str, reopened: bool = False) -> Iterator[Event]:
        """The open argument or json element ends."""
        if self.inside is None:
            if not reopened:
                yield Problem("stray close", element)
            return
        if reopened or self.inside != element:
            yield Problem("unclosed", self.inside)
        if self.inside == "argument" and self._key is not None:
            yield from self._finish_argument(self._key)
        self.inside = None

    def end(self) -> Iterator[Event]:
        """The call is complete."""
        if self.inside is not None:
            yield from self.close("call")
        raw, left = self._raw()
        if left:
            yield Problem("stray text", left)
        if self._keys:
            yield from self._out("}")
        elif raw.strip():
            yield from self._finish_raw(raw)
        else:
            yield from self._out("{}")
        if self.name:
            yield CallEnd(self.index)

    def cut(self) -> Iterator[Event]:
        """The answer ended here: the arguments stay text that is not JSON."""
        raw, _ = self._raw()
        if self._keys:
            yield from self._out("".join(self._parts))
        elif values.json_type(raw) == "object":
            yield from self.end()
            return
        else:
            # "{" keeps an empty text, or a number, from being read as arguments.
            yield from self._out(raw if _is_no_json(raw) else "{" + raw)
        if self.name:
            yield Problem("cut call", self.name)

    def _finish_argument(self, key: str) -> Iterator[Event]:
        if self._type == "string":
            yield from self._out('"')
            return
        text = "".join(self._parts)
        self._parts = []
        found = values.json_type(text)
        yield from self._out(_quoted(text) if found is None else text.strip())
        if self._type not in values.TYPES:
            yield Problem("unknown type", f"{key}: {self._type}")
        elif found is None:
            yield Problem("invalid JSON", key)
        elif found != self._type:
            yield Problem("type", f"{key}: {found} for {self._type}")

    def _raw(self) -> tuple[str, str]:
        """The text that stands for all arguments, and text that stands for nothing."""
        loose = "".join(self._loose).strip()
        if self._json is not None and not self._keys:
            return "".join(self._json), loose
        if self._keys:
            return "", "".join(self._json or []) + loose
        return loose, ""

    def _finish_raw(self, raw: str) -> Iterator[Event]:
        found = values.json_type(raw)
        if found == "object":
            yield from self._out(raw)
            return
        if not _is_no_json(raw):
            # What a client sends back must be something that the renderer takes.
            value = _quoted(raw) if found is None else raw.strip()
            raw = f"{{{_quoted(LOOSE_KEY)}: {value}}}"
        yield from self._out(raw)
        yield Problem("invalid arguments", self.name)

    def _out(self, text: str) -> Iterator[Event]:
        if self.name and text:
            yield CallArguments(self.index, text)


def _is_no_json(text: str) -> bool:
    """As Python's json has it, NaN and all: what clients and the renderer read."""
    try:
        return isinstance(values.arguments(text, "arguments"), str)
    except RequestError:
        return False


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
