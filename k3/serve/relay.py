"""One request through the router: to a replica, and to another one if that is lost."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

import httpx
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from k3.errors import RequestError
from k3.serve import transcript
from k3.serve.attempts import BUSY, Attempts, Call
from k3.serve.openai import limits, sse
from k3.serve.openai.errors import ApiError
from k3.serve.pool import Pool, Replica
from k3.serve.transcript import Transcript

# Less than a replica waits: it must not look as if the replica had gone.
STALL_SECONDS = sse.STALL_SECONDS / 2
LOG = logging.getLogger("k3.serve")
LOST = "the replica that answered was lost; send the request again"
_OWN_HEADERS = frozenset(
    {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}
)


class Lost(Exception):
    """A replica did not answer to the end.

    `reached` if it may have begun, `told` is the error event that it sent, if it did.
    """

    def __init__(self, reached: bool, told: bytes = b"") -> None:
        super().__init__()
        self.reached, self.told = reached, told


@dataclass(slots=True)
class Opened:
    """A replica's response whose body is still to come; closed once, it is over."""

    replica: Replica
    response: httpx.Response
    open: bool = True

    @property
    def status(self) -> int:
        """Its status."""
        return self.response.status_code

    @property
    def streams(self) -> bool:
        """Whether events follow."""
        kind = self.response.headers.get("content-type", "")
        return self.status == 200 and kind.startswith("text/event-stream")

    @property
    def headers(self) -> dict[str, str]:
        """The replica's headers, and its name."""
        them = self.response.headers.items()
        kept = {k: v for k, v in them if k not in _OWN_HEADERS}
        return {**kept, "x-k3-replica": self.replica.name}

    async def close(self) -> None:
        """Let the connection go; a replica that still writes hears of it."""
        if self.open:
            self.open = False
            self.replica.end()
            await self.response.aclose()


async def read(request: Request, most_bytes: int) -> Call:
    """The request with its body. Raises: ApiError 413."""
    body = await limits.read(request, most_bytes)
    url = request.url
    target = f"{url.path}?{url.query}" if url.query else url.path
    headers = {k: v for k, v in request.headers.items() if k not in _OWN_HEADERS}
    # Events are passed on as they are, so they must come as they are.
    headers["accept-encoding"] = "identity"
    try:
        fields = limits.parse(body) if body else {}
    except ApiError:
        fields = {}
    known = fields if isinstance(fields, dict) else {}
    return Call(request.method, target, headers, body, known)


async def answer(pool: Pool, call: Call) -> Response:
    """The replica's answer, whole or as a stream. Raises: ApiError 502, 503."""
    attempt = Attempts(pool, call)
    refusal: Response | None = None
    while (replica := await attempt.next()) is not None:
        try:
            opened = await send(pool, replica, call)
            if opened.streams:
                return Relayed(events(attempt, opened), opened)
            found = await whole(opened)
        except Lost as lost:
            attempt.lost(replica, lost.reached)
            continue
        if found.status_code < 500 and found.status_code not in BUSY:
            return found
        refusal = found
        attempt.refused(found.status_code)
    if refusal is not None:
        return refusal
    raise attempt.over()


async def send(pool: Pool, replica: Replica, call: Call) -> Opened:
    """The replica's response, its body still to be read. Raises: Lost."""
    made = pool.client.build_request(
        call.method,
        replica.url + call.target,
        headers=dict(call.headers),
        content=call.body,
    )
    replica.begin()
    try:
        return Opened(replica, await pool.client.send(made, stream=True))
    except BaseException as fault:
        replica.end()
        if isinstance(fault, httpx.TransportError):
            early = httpx.ConnectError | httpx.ConnectTimeout
            raise Lost(not isinstance(fault, early)) from None
        raise


async def whole(opened: Opened) -> Response:
    """An answer that does not stream. Raises: Lost."""
    try:
        content = await opened.response.aread()
    except httpx.TransportError:
        raise Lost(True) from None
    finally:
        await opened.close()
    return Response(content, opened.status, headers=opened.headers)


async def events(attempt: Attempts, opened: Opened) -> AsyncGenerator[bytes, None]:
    """The events of a stream, continued on another replica where that is exact.

    What has sent no text is started again; what has, only if it is greedy or seeded
    and the other replica repeats it. Otherwise an error event ends the stream.
    """
    sent, told = Transcript(), b""
    while True:
        try:
            async with aclosing(_events(opened)) as found:
                async for event in found:
                    if part := sent.take(event):
                        yield part
            return
        except RequestError as error:
            yield _error(str(error))
            return
        except Lost as lost:
            told = lost.told or _error(LOST)
            attempt.lost(opened.replica, lost.reached)
        other = await _again(attempt, sent)
        if other is None:
            yield told
            return
        opened = other


async def _again(attempt: Attempts, sent: Transcript) -> Opened | None:
    """Another replica that has begun the stream anew, None if that is no use."""
    if sent.started and not transcript.repeatable(attempt.call.fields):
        return None
    while (replica := await attempt.next()) is not None:
        try:
            opened = await send(attempt.pool, replica, attempt.call)
            if opened.streams:
                attempt.pool.counts["resumed" if sent.started else "restarted"] += 1
                sent.replay()
                return opened
            attempt.refused((await whole(opened)).status_code)
        except Lost as lost:
            attempt.lost(replica, lost.reached)
    return None


async def _events(opened: Opened) -> AsyncGenerator[bytes, None]:
    """The events of one replica's stream up to its end. Raises: Lost."""
    held = b""
    try:
        async for piece in opened.response.aiter_raw():
            *done, held = (held + piece).replace(b"\r\n", b"\n").split(b"\n\n")
            for event in done:
                if transcript.is_failure(event):
                    raise Lost(True, event + b"\n\n")
                yield event + b"\n\n"
                if transcript.data(event) == transcript.DONE:
                    return
        raise Lost(True)
    except httpx.TransportError:
        raise Lost(True) from None
    finally:
        await opened.close()


def _error(message: str) -> bytes:
    told = ApiError(502, message, code="replica_lost")
    return f"data: {limits.dumps(told.body)}\n\n".encode()


class Relayed(StreamingResponse):
    """A stream passed on; when the client leaves, the replica hears of it."""

    def __init__(self, body: AsyncGenerator[bytes, None], opened: Opened) -> None:
        self._body, self._opened = body, opened
        super().__init__(body, headers=opened.headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, and close the replica's stream however that ends."""
        try:
            await super().__call__(scope, receive, sse.within(send, STALL_SECONDS))
        except sse.Stalled:
            LOG.warning("a client reads no more: its stream is closed")
        finally:
            await self._body.aclose()
            # A stream that was never begun has nothing that would close it.
            await self._opened.close()
