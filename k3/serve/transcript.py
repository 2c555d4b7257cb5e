"""What a client has been sent of one stream, so that another replica can go on.

The second replica runs the request from its start. What it says again is dropped as
long as it is what was sent; where it differs, the stream cannot be continued.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from k3.errors import RequestError

Path: TypeAlias = tuple[Any, ...]
Leaf: TypeAlias = tuple[Path, dict[str, Any], str]
DONE = "[DONE]"


def repeatable(fields: Mapping[str, Any]) -> bool:
    """Whether a request gives the same text again: greedy or with a seed.

    With log-probabilities it is not continued: they come in pieces that cannot be cut.
    """
    seed, temperature = fields.get("seed"), fields.get("temperature")
    fixed = isinstance(seed, int) or temperature == 0
    return fixed and not fields.get("logprobs") and not fields.get("top_logprobs")


def data(event: bytes) -> str:
    """The data of a server-sent event, "" for a comment or a ping."""
    lines = event.decode("utf-8", "replace").splitlines()
    parts = [line[5:].lstrip(" ") for line in lines if line.startswith("data:")]
    return "\n".join(parts)


def is_failure(event: bytes) -> bool:
    """Whether an event says that the server, not the request, is at fault."""
    found = (_object(data(event)) or {}).get("error")
    return isinstance(found, dict) and found.get("type") == "server_error"


class Transcript:
    """The texts sent so far, by choice and channel; replaying drops them again."""

    def __init__(self) -> None:
        self.sent: dict[Path, str] = {}
        self._identity: dict[str, Any] = {}
        self._left: dict[Path, str] = {}
        self._replaying = self._counted = False

    @property
    def started(self) -> bool:
        """Whether the client has seen any text or ending."""
        return any(self.sent.values())

    def replay(self) -> None:
        """Another replica starts the request again."""
        self._left, self._replaying = dict(self.sent), bool(self._identity)

    def take(self, event: bytes) -> bytes:
        """The part of an event that is new to the client, b"" for none of it.

        Raises: RequestError where a replay does not repeat what was sent.
        """
        text = data(event)
        if text == DONE:
            self._check_rest(self._left)
            return event
        chunk = _object(text)
        if chunk is None or "choices" not in chunk:
            return event
        if not self._replaying:
            self._note(chunk)
            return event
        return self._new_part(chunk)

    def _note(self, chunk: dict[str, Any]) -> None:
        if not self._identity:
            names = ("id", "created", "system_fingerprint")
            self._identity = {name: chunk[name] for name in names if name in chunk}
        self._counted |= bool(chunk.get("usage"))
        for path, holder, name in leaves(chunk):
            self.sent[path] = self.sent.get(path, "") + holder[name]

    def _new_part(self, chunk: dict[str, Any]) -> bytes:
        new = {leaf[0] for leaf in leaves(chunk) if self._cut(*leaf)}
        grown = {path[0] for path in new}
        self._check_rest({p: left for p, left in self._left.items() if p[0] in grown})
        for choice in chunk.get("choices") or ():
            (choice.get("delta") or {}).pop("role", None)
        if not new and (self._counted or not chunk.get("usage")):
            return b""
        self._note(chunk)
        made = json.dumps(chunk | self._identity, ensure_ascii=False)
        return f"data: {made}\n\n".encode()

    def _cut(self, path: Path, holder: dict[str, Any], name: str) -> bool:
        """Remove from a text what was sent of it; whether any of it is new."""
        text, left = holder[name], self._left.get(path, "")
        same = min(len(text), len(left))
        if text[:same] != left[:same]:
            self._check_rest({path: left})
        self._left[path], holder[name] = left[same:], text[same:]
        if same and not holder[name] and name in ("finish_reason", "name"):
            holder[name] = None if name == "finish_reason" else ""
        return bool(holder[name])

    @staticmethod
    def _check_rest(left: Mapping[Path, str]) -> None:
        if any(left.values()):
            raise RequestError(
                "the replica was lost, and another one does not repeat what was sent; "
                "send the request again"
            )


def leaves(chunk: Mapping[str, Any]) -> Iterator[Leaf]:
    """Yield (path, holder, name) of every text; a path starts with its choice."""
    for choice in chunk.get("choices") or ():
        at, delta = (choice.get("index", 0),), choice.get("delta") or {}
        yield from _texts(at, delta, ("content", "reasoning_content", "reasoning"))
        for call in delta.get("tool_calls") or ():
            place = (*at, "call", call.get("index", 0))
            yield from _texts(place, call.get("function") or {}, ("name", "arguments"))
        yield from _texts(at, choice, ("text", "finish_reason"))


def _texts(at: Path, holder: dict[str, Any], names: tuple[str, ...]) -> Iterator[Leaf]:
    for name in names:
        if isinstance(holder.get(name), str):
            yield (*at, name), holder, name


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text) if text else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
