"""A reply being made: the outputs of its requests, gathered whole or streamed."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, Protocol, TypeVar

from starlette.requests import Request as HttpRequest

from k3.serve.openai.errors import ApiError
from k3.serve.openai.reply import Identity
from k3.serve.openai.service import Service
from k3.serve.request import Output, Request

T = TypeVar("T")
# A prompt that takes longer than this gets its status line before its first token.
PATIENCE_SECONDS = 5.0


class Gone(Exception):
    """The client has left; nobody reads an answer."""


class Reply(Protocol):
    """What one HTTP request becomes: one or several requests to the engine."""

    requests: Sequence[Request]
    identity: Identity

    def take(self, place: int, output: Output) -> list[dict[str, Any]]:
        """Read an output of request `place`; returns the chunks that it gives."""

    def opening(self) -> list[dict[str, Any]]:
        """The chunks before any output."""

    def closing(self) -> list[dict[str, Any]]:
        """The chunks after all outputs."""

    def whole(self) -> dict[str, Any]:
        """The answer of a request that does not stream."""

    @property
    def complete(self) -> bool:
        """Whether everything asked for has come."""


async def gather(service: Service, reply: Reply) -> dict[str, Any]:
    """The whole answer."""
    async with aclosing(outputs(service, reply.requests)) as found:
        async for place, output in found:
            reply.take(place, output)
            if reply.complete:
                break
    return reply.whole()


async def chunks(
    service: Service, reply: Reply
) -> AsyncGenerator[dict[str, Any], None]:
    """The answer in chunks. The first step runs the engine, and may raise ApiError."""
    async with aclosing(outputs(service, reply.requests)) as found:
        async for place, output in found:
            for chunk in reply.take(place, output):
                yield chunk
            if reply.complete:
                break
    for chunk in reply.closing():
        yield chunk


async def outputs(
    service: Service, requests: Sequence[Request]
) -> AsyncGenerator[tuple[int, Output], None]:
    """(place, output) of several requests as they come; one that fails ends all."""
    queue: asyncio.Queue[tuple[int, Output | BaseException | None]] = asyncio.Queue()

    async def feed(place: int, request: Request) -> None:
        try:
            async with aclosing(service.outputs(request)) as stream:
                async for output in stream:
                    queue.put_nowait((place, output))
            queue.put_nowait((place, None))
        except Exception as error:
            queue.put_nowait((place, error))

    tasks = [asyncio.create_task(feed(*each)) for each in enumerate(requests)]
    left = len(tasks)
    try:
        while left:
            place, found = await queue.get()
            if isinstance(found, BaseException):
                raise found
            if found is None:
                left -= 1
            else:
                yield place, found
    finally:
        await end(tasks)


async def end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have let go of what they hold."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def while_connected(http: HttpRequest, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work, which ends when the client leaves.

    Raises: Gone.
    """
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_leaving(http))
    try:
        await asyncio.wait([task, leaving], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Gone
    finally:
        await end([task, leaving])


async def first(
    http: HttpRequest, stream: AsyncGenerator[T, None]
) -> "asyncio.Task[T] | None":
    """Wait for the first item, so that a refusal still has its status.

    Returns its task, done or, after a while, not; None for an empty stream.
    """
    task = asyncio.ensure_future(_next(stream))
    leaving = asyncio.ensure_future(_leaving(http))
    try:
        await asyncio.wait(
            [task, leaving],
            timeout=PATIENCE_SECONDS,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if leaving.done() and not task.done():
            raise Gone
        if task.done():
            task.result()
        return task
    except BaseException as error:
        await end([task])
        if isinstance(error, StopAsyncIteration):
            return None
        raise
    finally:
        await end([leaving])


async def _next(stream: AsyncGenerator[T, None]) -> T:
    return await anext(stream)


async def _leaving(http: HttpRequest) -> None:
    """Returns when the client has closed its connection."""
    while True:
        message = await http.receive()
        if message["type"] == "http.disconnect":
            return


def failed(error: BaseException) -> ApiError:
    """What a client is told when a stream breaks after its status line."""
    if isinstance(error, ApiError):
        return error
    return ApiError(500, "the server failed; its log says why", code="internal_error")
