"""Scripted replicas, called in this process as a client calls them over a wire."""

import asyncio
import json

import httpx
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route


class Script:
    """A replica: what it answers, where it breaks off, and what it saw."""

    def __init__(self, name, words=("one ", "two ", "three")):
        self.name, self.words = name, words
        self.breaks_after = None
        self.status = 200
        self.seen, self.left, self.down = [], asyncio.Event(), False
        self.hold = None
        routes = [
            Route("/health", self.health),
            Route("/metrics", self.metrics),
            Route("/{path:path}", self.answer, methods=["GET", "POST"]),
        ]
        self.app = Starlette(routes=routes)

    async def health(self, request):
        return PlainTextResponse("", 503 if self.down else 200)

    async def metrics(self, request):
        text = "# HELP k3:x_total X.\n# TYPE k3:x_total counter\n"
        return PlainTextResponse(f'{text}k3:x_total 1\nk3:x_total{{a="b"}} 2\n')

    async def answer(self, request):
        body = await request.body()
        self.seen.append((request.url.path, body, dict(request.headers)))
        if self.status != 200:
            return JSONResponse({"error": self.name}, self.status)
        if self.hold is not None:
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                self.left.set()
                raise
        if not (body and json.loads(body).get("stream")):
            return JSONResponse({"from": self.name})
        return StreamingResponse(self.events(), media_type="text/event-stream")

    async def events(self):
        for place, word in enumerate(self.words):
            if place == self.breaks_after:
                raise httpx.ReadError("gone")
            choice = {"index": 0, "delta": {"content": word}}
            made = {"id": self.name, "choices": [choice]}
            yield f"data: {json.dumps(made)}\n\n".encode()
        yield b"data: [DONE]\n\n"


class Wire(httpx.AsyncBaseTransport):
    """Calls the scripts in this process, streaming, and can be cut."""

    def __init__(self, scripts):
        self.by_host = {s.name: s for s in scripts}
        self.cut = set()

    async def handle_async_request(self, request):
        name = request.url.host
        if name in self.cut:
            raise httpx.ConnectError("refused")
        return await _call(self.by_host[name].app, request)


async def _call(app, request):
    """One request to an ASGI application; its body comes as it is made."""
    queue, body = asyncio.Queue(), await request.aread()
    scope = {
        "type": "http",
        "method": request.method,
        "path": request.url.path,
        "query_string": request.url.query,
        "headers": [(k.lower(), v) for k, v in request.headers.raw],
    }
    given = [{"type": "http.request", "body": body}]

    async def receive():
        return given.pop() if given else await asyncio.Future()

    async def work():
        try:
            await app(scope, receive, queue.put)
            await queue.put(None)
        except BaseException as error:
            await queue.put(error)

    task = asyncio.ensure_future(work())
    try:
        start = await queue.get()
    except asyncio.CancelledError:
        task.cancel()
        raise
    return httpx.Response(
        start["status"], headers=start["headers"], stream=_Body(queue, task)
    )


class _Body(httpx.AsyncByteStream):
    def __init__(self, queue, task):
        self.queue, self.task = queue, task

    async def __aiter__(self):
        while (message := await self.queue.get()) is not None:
            if isinstance(message, BaseException):
                raise httpx.ReadError("gone") from message
            yield message.get("body", b"")

    async def aclose(self):
        self.task.cancel()
