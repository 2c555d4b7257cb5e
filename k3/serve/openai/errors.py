"""Errors in OpenAI's shape: status, message, type, param, code; never a stack trace."""

import re
from collections.abc import Mapping
from typing import Any

from k3.errors import K3Error, RequestError

# What our own layers call a field, and what the request calls it.
NAMES = {
    "thinking_effort": "reasoning_effort",
    "stop_ids": "stop_token_ids",
    "images": "messages",
}
# Sentences whose first word is one of these speak of that field.
FIELDS = frozenset(
    [
        "messages",
        "prompt",
        "tools",
        "tool_choice",
        "response_format",
        "reasoning_effort",
        "thinking",
        "continue_final_message",
        "add_generation_prompt",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "seed",
        "stop",
        "stop_token_ids",
        "ignore_eos",
        "max_tokens",
        "n",
        "logprobs",
    ]
)
STOPPING = ("the engine is shutting down", "the engine has stopped")
QUEUE_FULL = "the queue is full"
RETRY_SECONDS = 1
_PATH = re.compile(r"[a-z_]+(\[\d+\]|\.[A-Za-z_]+)*(?= )")
_KINDS = {401: "authentication_error", 413: "invalid_request_error"}


class ApiError(K3Error):
    """What a client is told instead of an answer."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.param, self.code = param, code
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        """The JSON of the answer."""
        return {
            "error": {
                "message": self.message,
                "type": kind(self.status),
                "param": self.param,
                "code": self.code,
            }
        }


def kind(status: int) -> str:
    """OpenAI's `type` for a status."""
    if status == 429:
        return "rate_limit_error"
    if status >= 500:
        return "server_error"
    return _KINDS.get(status, "invalid_request_error")


def invalid(
    message: str, param: str | None = None, code: str | None = None
) -> ApiError:
    """A 400: the request is at fault."""
    return ApiError(400, message, param=param, code=code)


def refused(error: RequestError) -> ApiError:
    """What a layer below refused: 429 and 503 say later, 400 names its field."""
    words = str(error)
    if words.startswith(QUEUE_FULL):
        retry = {"retry-after": str(RETRY_SECONDS)}
        return ApiError(429, words, code="rate_limit_exceeded", headers=retry)
    if words.startswith(STOPPING):
        return ApiError(503, words, code="unavailable")
    found = _PATH.match(words)
    if found is None:
        return invalid(words)
    path = found.group()
    first = re.split(r"[.\[]", path, maxsplit=1)[0]
    if first in NAMES:
        path = NAMES[first] + path[len(first) :]
        words = path + words[found.end() :]
        first = NAMES[first]
    return invalid(words, path if first in FIELDS else None)
