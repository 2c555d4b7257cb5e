"""Decoding a token at a time without ever showing half a character."""

import codecs
from collections.abc import Callable
from typing import SupportsIndex


class StreamDecoder:
    """Ids in, text out; the joined answers equal the decoding of all ids.

    A character is returned with the id that completes it. Bytes that can no longer
    become a character are returned as replacement marks, one id later at most.
    """

    def __init__(self, token_bytes: Callable[[SupportsIndex], bytes]) -> None:
        self._token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: SupportsIndex) -> str:
        """The characters that `token_id` completes, possibly none."""
        return self._decoder.decode(self._token_bytes(token_id))

    def flush(self) -> str:
        """The marks for an unfinished character, once; then as new."""
        return self._decoder.decode(b"", final=True)
