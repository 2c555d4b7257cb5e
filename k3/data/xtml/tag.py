"""The text of one tag as it arrives: `name key="value" ...`, refused at once if not."""

from k3.data.xtml import segments

LIMIT = 1 << 16
NAME_LIMIT = 32
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")


class TagText:
    """What follows <|open|> or <|close|>, up to the next marker.

    One state per kind of character expected next, so each character is read once.
    """

    def __init__(self, marker: str) -> None:
        self.marker = marker
        self.name = ""
        self.attributes: dict[str, str] = {}
        self._parts = [marker]
        self._size = 0
        self._state = "name"
        self._key = ""
        self._value: list[str] = []

    @property
    def source(self) -> str:
        """What was read, as text."""
        return "".join(self._parts)

    @property
    def complete(self) -> bool:
        """True when <|sep|> may follow."""
        return bool(self.name) and self._state in ("name", "gap", "after")

    def feed(self, text: str) -> bool:
        """Read on; False when this can no longer be a tag."""
        self._parts.append(text)
        self._size += len(text)
        place = 0
        while place < len(text) and self._state:
            if self._state == "value":
                place = self._read_value(text, place)
            else:
                self._state = getattr(self, f"_{self._state}")(text[place])
                place += 1
        return bool(self._state) and self._size <= LIMIT

    def _read_value(self, text: str, place: int) -> int:
        stop = text.find('"', place)
        if stop < 0:
            self._value.append(text[place:])
            return len(text)
        self._value.append(text[place:stop])
        value = segments.unescape("".join(self._value))
        self.attributes.setdefault(self._key, value)
        self._key, self._value, self._state = "", [], "after"
        return stop + 1

    def _name(self, char: str) -> str:
        if char in _WORD and len(self.name) < NAME_LIMIT:
            self.name += char
            return "name"
        return "gap" if self.name and char.isspace() else ""

    def _gap(self, char: str) -> str:
        if char.isspace():
            return "gap"
        return self._in_key(char)

    def _in_key(self, char: str) -> str:
        if char in _WORD and len(self._key) < NAME_LIMIT:
            self._key += char
            return "in_key"
        return "quote" if self._key and char == "=" else ""

    def _quote(self, char: str) -> str:
        return "value" if char == '"' else ""

    def _after(self, char: str) -> str:
        return "gap" if char.isspace() else ""
