"""The Connect protocol's streams as JSON: a flag, a length, and a message, repeated.

Source: the published Connect protocol; flag 2 marks the last message, which may hold
an error.
"""

import json
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from k3.errors import RequestError

HEADERS = {
    "Content-Type": "application/connect+json",
    "Connect-Protocol-Version": "1",
}
LAST = 2


class Refused(RequestError):
    """A stream that ended with an error, by its code."""

    def __init__(self, error: dict[str, Any]) -> None:
        self.code = str(error.get("code", ""))
        super().__init__(
            f"a sandbox service did not do what it was asked: got {error}; look at the "
            "command and the service"
        )


def envelope(message: dict[str, Any], flag: int = 0) -> bytes:
    """One message as it travels."""
    data = json.dumps(message).encode()
    return struct.pack(">BI", flag, len(data)) + data


def messages(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The messages of a stream, as they come.

    Raises: Refused for an error that the stream ends with, RequestError for a stream
    that stops before its last message.
    """
    held = b""
    for chunk in chunks:
        held += chunk
        while len(held) >= 5:
            flag, size = struct.unpack(">BI", held[:5])
            if len(held) < 5 + size:
                break
            message = json.loads(held[5 : 5 + size] or b"{}")
            held = held[5 + size :]
            if not flag & LAST:
                yield message
                continue
            if "error" in message:
                raise Refused(message["error"])
            return
    raise RequestError(
        f"a stream ends with its last message: got {len(held)} bytes of the next one; "
        "ask again"
    )
