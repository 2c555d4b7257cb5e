"""Frames between the host and the program inside: length, JSON header, bytes."""

import json
import struct
from typing import IO, Any

HEADER_BYTES = 1 << 26
DATA_BYTES = 1 << 32


def send(pipe: IO[bytes] | None, header: dict[str, Any], data: bytes = b"") -> None:
    """Write one frame."""
    assert pipe is not None
    text = json.dumps(header | {"size": len(data)}).encode()
    pipe.write(struct.pack(">Q", len(text)) + text + data)
    pipe.flush()


def receive(pipe: IO[bytes] | None) -> tuple[dict[str, Any], bytes] | None:
    """Read one frame; None at the end, or where what comes is no frame."""
    assert pipe is not None
    try:
        head = pipe.read(8)
        if len(head) < 8 or (size := struct.unpack(">Q", head)[0]) > HEADER_BYTES:
            return None
        header = json.loads(pipe.read(size))
        if header["size"] > DATA_BYTES:
            return None
        data = pipe.read(header["size"])
    except (OSError, ValueError, KeyError):
        return None
    return (header, data) if len(data) == header["size"] else None
