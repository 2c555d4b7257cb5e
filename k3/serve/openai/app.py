"""The OpenAI-compatible application: routes, keys, limits, errors."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.serve.openai import chat, completions, limits, models, run, sse, tokens
from k3.serve.openai.errors import ApiError, refused
from k3.serve.openai.options import LOCAL, ServerOptions
from k3.serve.openai.service import Runs, Service

LOG = logging.getLogger("k3.serve")
# What nginx calls it; nobody is there to read it.
CLIENT_GONE = 499
Handler: TypeAlias = Callable[[Request, Service], Awaitable[Response]]
Prepare: TypeAlias = Callable[[Service, Mapping[str, Any], bytes], Any]


def app(
    worker: Runs | None,
    tokenizer: Tokenizer,
    options: ServerOptions,
    *,
    reader: ASGIApp | None = None,
) -> Starlette:
    """The application. `state.service.worker` may be set later, once it is loaded.

    `reader` answers every path that is not an endpoint.
    """
    service = Service(worker, tokenizer, options)
    routes: list[Any] = [
        _route("/v1/chat/completions", _generating(chat.prepare), "POST"),
        _route("/v1/completions", _generating(completions.prepare), "POST"),
        _route("/v1/models", _models, "GET"),
        _route("/v1/models/{name:path}", _model, "GET"),
        _route("/health", _health, "GET"),
        _route("/ping", _health, "GET"),
        _route("/metrics", _metrics, "GET"),
        _route("/version", _version, "GET"),
        _route("/tokenize", _computed(tokens.tokenize), "POST"),
        _route("/detokenize", _computed(tokens.detokenize), "POST"),
        _route("/tokenizer_info", _tokenizer_info, "GET"),
        _route("/reset_prefix_cache", _reset, "POST"),
        _route("/flush_cache", _reset, "GET", "POST"),
    ]
    if reader is not None:
        routes.append(Mount("/", app=reader))
    made = Starlette(
        routes=routes,
        middleware=[_cors(options)],
        exception_handlers={HTTPException: _no_route},
    )
    made.state.service = service
    return made


def answer(value: Any, status: int = 200, **headers: str) -> Response:
    """A JSON response."""
    return Response(
        limits.dumps(value),
        status,
        headers={name.replace("_", "-"): text for name, text in headers.items()},
        media_type="application/json",
    )


def _cors(options: ServerOptions) -> Middleware:
    return Middleware(
        CORSMiddleware,
        allow_origins=list(options.allowed_origins),
        allow_origin_regex=LOCAL,
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=["x-request-id", "retry-after"],
    )


def _route(path: str, handler: Handler, *methods: str) -> Route:
    async def endpoint(request: Request) -> Response:
        service: Service = request.app.state.service
        response = await _guarded(handler, request, service)
        service.counters.answered(path, response.status_code)
        return response

    return Route(path, endpoint, methods=list(methods))


async def _guarded(handler: Handler, request: Request, service: Service) -> Response:
    """The handler's answer, or its refusal in OpenAI's shape."""
    try:
        if request.url.path not in limits.OPEN_PATHS:
            request.state.tenant = limits.tenant(request, service.options.api_keys)
        return await handler(request, service)
    except ApiError as error:
        return _refusal(error)
    except RequestError as error:
        return _refusal(refused(error))
    except (run.Gone, ClientDisconnect):
        return Response(status_code=CLIENT_GONE)
    except Exception as error:
        LOG.exception("%s failed", request.url.path)
        return _refusal(run.failed(error))


def _refusal(error: ApiError) -> Response:
    return answer(error.body, error.status, **error.headers)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        words = (
            f"there is no {request.url.path[:80]} here; docs/serving.md lists what is"
        )
        return _refusal(ApiError(404, words, code="not_found"))
    headers = dict(error.headers or {})
    words = f"{request.method} does not fit {request.url.path[:80]}: {error.detail}"
    return _refusal(ApiError(error.status_code, words, headers=headers))


def _generating(prepare: Prepare) -> Handler:
    """The handler of an endpoint that runs the model."""

    async def handler(request: Request, service: Service) -> Response:
        service.ready()
        body = await limits.read_json(request, service.options.max_body_bytes)
        tenant = request.state.tenant
        # Rendering, images and grammars take time; the loop serves others meanwhile.
        reply = await asyncio.to_thread(prepare, service, body, tenant)
        name = {"x-request-id": reply.identity.id}
        if body.get("stream") is not True:
            work = run.gather(service, reply)
            whole = await run.while_connected(request, work)
            return answer(whole, **name)
        stream = run.chunks(service, reply)
        try:
            first = await run.first(request, stream)
        except BaseException:
            await stream.aclose()
            raise
        return sse.Events(reply.opening(), first, stream, name)

    return handler


def _computed(
    compute: Callable[[Service, Mapping[str, Any]], dict[str, Any]],
) -> Handler:
    """The handler of an endpoint that needs no model."""

    async def handler(request: Request, service: Service) -> Response:
        body = await limits.read_json(request, service.options.max_body_bytes)
        return answer(await asyncio.to_thread(compute, service, body))

    return handler


async def _models(request: Request, service: Service) -> Response:
    return answer(models.listed(service))


async def _model(request: Request, service: Service) -> Response:
    return answer(models.one(service, request.path_params["name"]))


async def _health(request: Request, service: Service) -> Response:
    service.ready()
    return answer({"status": "ok"})


async def _version(request: Request, service: Service) -> Response:
    return answer(models.version())


async def _tokenizer_info(request: Request, service: Service) -> Response:
    return answer(tokens.info(service))


async def _metrics(request: Request, service: Service) -> Response:
    engine = None
    if service.worker is not None:
        engine = await service.worker.call(lambda engine: engine.snapshot())
    found = await asyncio.to_thread(service.counters.exposition, engine)
    return Response(found, media_type="text/plain; version=0.0.4; charset=utf-8")


async def _reset(request: Request, service: Service) -> Response:
    await service.ready().call(lambda engine: engine.reset_prefix_cache())
    return answer({"success": True})
