"""Server-sent events: `data: {...}` lines, pings, `data: [DONE]`.

Not sse-starlette: it patches uvicorn so that a signal cuts running streams, and here
they are finished.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from k3.serve.openai import limits, run

PING_SECONDS = 15.0
# A client that takes nothing for so long reads no more; what waits for it is let go.
STALL_SECONDS = 120.0
DONE = b"data: [DONE]\n\n"
LOG = logging.getLogger("k3.serve")


class Stalled(Exception):
    """A client has taken nothing for too long."""


def within(send: Send, seconds: float) -> Send:
    """`send` with a limit to how long a client may take nothing. Raises: Stalled."""

    async def limited(message: Message) -> None:
        try:
            async with asyncio.timeout(seconds):
                await send(message)
        except TimeoutError:
            raise Stalled from None

    return limited


class Events(StreamingResponse):
    """The response; when the client leaves, the stream is closed, not forgotten."""

    def __init__(
        self,
        opening: list[dict[str, Any]],
        first: "asyncio.Task[dict[str, Any]] | None",
        rest: AsyncGenerator[dict[str, Any], None],
        headers: dict[str, str],
    ) -> None:
        self._first, self._rest = first, rest
        self._body = _lines(opening, first, rest)
        headers = {**headers, "cache-control": "no-cache", "x-accel-buffering": "no"}
        super().__init__(self._body, media_type="text/event-stream", headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, and close what feeds it however that ends."""
        try:
            await super().__call__(scope, receive, within(send, STALL_SECONDS))
        except Stalled:
            LOG.warning("a client reads no more: its stream is closed")
        finally:
            await self._body.aclose()
            if self._first is not None:
                await run.end([self._first])
            await self._rest.aclose()


async def _lines(
    opening: list[dict[str, Any]],
    first: "asyncio.Task[dict[str, Any]] | None",
    rest: AsyncGenerator[dict[str, Any], None],
) -> AsyncGenerator[bytes, None]:
    for chunk in opening:
        yield _data(chunk)
    task = first
    try:
        while task is not None:
            done, _ = await asyncio.wait([task], timeout=PING_SECONDS)
            if not done:
                yield b": ping\n\n"
                continue
            try:
                yield _data(task.result())
            except StopAsyncIteration:
                break
            task = asyncio.ensure_future(_next(rest))
    except Exception as error:
        told = run.failed(error)
        if told is not error:
            LOG.exception("a stream failed")
        yield _data(told.body)
    finally:
        if task is not None:
            await run.end([task])
    yield DONE


async def _next(stream: AsyncGenerator[dict[str, Any], None]) -> dict[str, Any]:
    return await anext(stream)


def _data(value: dict[str, Any]) -> bytes:
    return f"data: {limits.dumps(value)}\n\n".encode()
