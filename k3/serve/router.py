"""The application in front of replicas: it speaks to each as a client would."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from k3.errors import RequestError
from k3.serve import exposition, relay
from k3.serve.openai import limits, run
from k3.serve.openai.app import CLIENT_GONE
from k3.serve.openai.errors import ApiError, invalid
from k3.serve.pool import Pool

MAX_BODY_BYTES = 256 * 2**20
METHODS = ["GET", "POST", "PUT", "DELETE", "OPTIONS"]
TO_ALL = ("/reset_prefix_cache", "/flush_cache")


def app(
    pool: Pool,
    *,
    api_keys: tuple[str, ...] = (),
    max_body_bytes: int = MAX_BODY_BYTES,
    check_seconds: float = 1.0,
) -> Starlette:
    """The router. Replicas check keys themselves; draining one needs a key too.

    Its own paths: /health, /metrics of all replicas, POST /replicas/NAME/drain and
    /resume. What clears caches goes to every replica, all else to one.
    """
    routes = [
        Route("/health", _health, methods=["GET"]),
        Route("/ping", _health, methods=["GET"]),
        Route("/metrics", _metrics, methods=["GET"]),
        Route("/replicas/{name}/{what}", _guarded(_drain), methods=["POST"]),
        *(Route(path, _guarded(_to_all), methods=METHODS) for path in TO_ALL),
        Route("/{path:path}", _guarded(_to_one), methods=METHODS),
    ]

    @contextlib.asynccontextmanager
    async def lifespan(made: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(pool.watch(check_seconds))
        yield
        await run.end([watching])
        await pool.close()

    made = Starlette(routes=routes, lifespan=lifespan)
    made.state.pool, made.state.api_keys = pool, api_keys
    made.state.max_body_bytes = max_body_bytes
    return made


def _guarded(
    handler: Callable[[Request, Pool], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return await handler(request, request.app.state.pool)
        except ApiError as error:
            return _json(error.body, error.status, error.headers)
        except (run.Gone, ClientDisconnect):
            return Response(status_code=CLIENT_GONE)

    return endpoint


async def _to_one(request: Request, pool: Pool) -> Response:
    call = await relay.read(request, request.app.state.max_body_bytes)
    return await run.while_connected(request, relay.answer(pool, call))


async def _to_all(request: Request, pool: Pool) -> Response:
    call = await relay.read(request, request.app.state.max_body_bytes)
    found: list[Response] = []
    for replica in pool.replicas.values():
        if not replica.ready:
            continue
        try:
            opened = await relay.send(pool, replica, call)
            found.append(await relay.whole(opened))
        except relay.Lost:
            pool.failed(replica)
    if not found:
        raise ApiError(503, "no replica is ready; try again later", code="unavailable")
    return max(found, key=lambda response: response.status_code)


async def _drain(request: Request, pool: Pool) -> Response:
    limits.tenant(request, request.app.state.api_keys)
    name, what = request.path_params["name"], request.path_params["what"]
    if what not in ("drain", "resume"):
        raise ApiError(404, f"a replica takes drain and resume: got {what[:40]!r}")
    try:
        replica = pool.drain(name, what == "drain")
    except RequestError as error:
        raise invalid(str(error)) from None
    return _json({"name": name, "state": replica.state, "in_flight": replica.in_flight})


async def _health(request: Request) -> Response:
    pool: Pool = request.app.state.pool
    states = {name: replica.state for name, replica in pool.replicas.items()}
    well = "ready" in states.values()
    told = {"status": "ok" if well else "unavailable", "replicas": states}
    return _json(told, 200 if well else 503)


async def _metrics(request: Request) -> Response:
    """The metrics of all replicas with a label each, and the router's own."""
    pool: Pool = request.app.state.pool
    texts: dict[str, str] = {}
    for name, replica in pool.replicas.items():
        with contextlib.suppress(httpx.HTTPError):
            told = await pool.client.get(f"{replica.url}/metrics", timeout=2.0)
            texts[name] = told.text if told.status_code == 200 else ""
    body = exposition.labelled(texts) + exposition.router(pool)
    return Response(body, media_type="text/plain; version=0.0.4; charset=utf-8")


def _json(value: Any, status: int = 200, headers: Any = None) -> Response:
    return Response(
        limits.dumps(value), status, headers=headers, media_type="application/json"
    )
