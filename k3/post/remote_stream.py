"""One streamed completion of token ids: what is asked of a server, what it tells."""

import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, NamedTuple

from k3.errors import K3Error, RequestError
from k3.post.engine import SamplerOptions

if TYPE_CHECKING:
    import httpx

BUSY = (408, 409, 429, 500, 502, 503, 504)
FULL = ("context_length_exceeded", "context length", "context window", "must fit in")


class Chunk(NamedTuple):
    """Tokens with their log-probabilities, and whether they are the last."""

    tokens: list[tuple[int, float]]
    done: bool


class Broken(K3Error):
    """A stream that may be opened again: it ended early, or the server is busy."""


class Full(K3Error):
    """The context has no room for another token."""


def body(
    model: str, tokens: list[int], most: int, seed: int, options: SamplerOptions
) -> dict[str, Any]:
    """What is asked: the tokens continued, with the ids of what is written."""
    return {
        "model": model,
        "prompt": tokens,
        "max_tokens": most,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "seed": seed,
        "stop_token_ids": list(options.stop_ids),
        "ignore_eos": options.ignore_eos,
        # SGLang takes 0 for none.
        "logprobs": 1,
        "return_token_ids": True,
        "stream": True,
    }


async def chunks(response: "httpx.Response") -> AsyncIterator[Chunk]:
    """The chunks of a stream as they come.

    Raises: Broken where it ends before its end; Full; RequestError.
    """
    if response.status_code != 200:
        raise refusal(response.status_code, (await response.aread()).decode())
    async for line in response.aiter_lines():
        if not line.startswith("data:"):
            continue
        data = line.removeprefix("data:").strip()
        if data == "[DONE]":
            break
        found = _json(data)
        if "error" in found:
            code = found["error"].get("code") if isinstance(found["error"], dict) else 0
            raise refusal(code if isinstance(code, int) else 500, data)
        if found.get("choices"):
            chunk = read(found["choices"][0])
            yield chunk
            if chunk.done:
                return
    raise Broken("the stream ended before its turn did")


def refusal(status: int, said: str) -> K3Error:
    """What a refusal means: wait, no room, or a request that no retry mends."""
    words = f"{status} {said[:200]}"
    if status == 400 and any(each in said for each in FULL):
        return Full(words)
    if status in BUSY:
        return Broken(words)
    return RequestError(f"the server refuses a completion: {words}")


def read(choice: dict[str, Any]) -> Chunk:
    """The tokens of a chunk's choice. Raises: RequestError without ids or logprobs."""
    ids = choice.get("token_ids") or []
    logprobs = (choice.get("logprobs") or {}).get("token_logprobs") or []
    if len(ids) != len(logprobs) or (choice.get("text") and not ids):
        raise RequestError(
            "a completion tells the id and the log-probability of every token: got "
            f"{len(ids)} token_ids and {len(logprobs)} token_logprobs for "
            f"{str(choice.get('text'))[:40]!r}; use a server that knows "
            "return_token_ids"
        )
    tokens = [(int(i), float(p)) for i, p in zip(ids, logprobs, strict=True)]
    return Chunk(tokens, done=bool(choice.get("finish_reason")))


def _json(data: str) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        raise Broken(f"a stream holds JSON: got {data[:80]!r}") from None
    if not isinstance(found, dict):
        raise RequestError(f"a chunk is an object: got {data[:80]!r}")
    return found
