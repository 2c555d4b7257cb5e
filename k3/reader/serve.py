"""The site over HTTP. `/api/eval` runs a figure's equations in Python, `/api/trace` the
shipped model on a text of the reader's own."""

import asyncio
import mimetypes
from collections.abc import Callable
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp

from k3.errors import K3Error

MOST_BYTES = 100_000
TYPES = {".js": "text/javascript", ".woff2": "font/woff2", ".svg": "image/svg+xml"}


def pages() -> ASGIApp:
    """What answers every path of the site, alone or mounted beside a model.

    The pages are built at the first request. What is not there is an HTTPException, so
    that the application around it says so in its own form.
    """
    routes = [
        Route("/api/eval", evaluate, methods=["POST"]),
        Route("/api/trace", trace, methods=["POST"]),
        Route("/{path:path}", file, methods=["GET", "POST", "PUT", "DELETE"]),
    ]
    return GZipMiddleware(Router(routes), minimum_size=1000)


def app() -> Starlette:
    """The site as an application of its own."""
    return Starlette(routes=[Mount("/", app=pages())])


async def file(request: Request) -> Response:
    """A file of the site; a folder's address is its index, a name its page."""
    path = request.path_params["path"] or "index.html"
    found = await asyncio.to_thread(_site) if request.method in ("GET", "HEAD") else {}
    content = found.get(path, found.get(f"{path}.html"))
    if content is None:
        raise HTTPException(404)
    suffix = path[path.rfind(".") :] if "." in path else ".html"
    kind = TYPES.get(suffix) or mimetypes.types_map.get(suffix, "text/html")
    return Response(content, media_type=kind, headers={"cache-control": "no-cache"})


@cache
def _site() -> dict[str, bytes]:
    """The files; pages know that they are served, and offer to run Python.

    What builds them reads graphs and theorems: a server starts without it.
    """
    from k3.reader import site

    return {
        path: content.replace(b"<html ", b"<html data-served ", 1)
        if path.endswith(".html")
        else content
        for path, content in site.site().items()
    }


async def evaluate(request: Request) -> Response:
    """{"widget": name, "state": {...}} to the numbers by `k3.spec`."""
    body = await request.body()
    if len(body) > MOST_BYTES:
        return _refused(f"a state has at most {MOST_BYTES:,} bytes", 413)
    try:
        asked: Any = await request.json()
        name, state = asked["widget"], asked["state"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return _refused('/api/eval takes {"widget": name, "state": {...}}', 400)
    from k3.reader import widgets

    if name not in widgets.names() or not isinstance(state, dict):
        return _refused(f"there is no widget {str(name)[:80]}", 404)
    return await _answer(widgets.evaluate, name, state)


async def trace(request: Request) -> Response:
    """{"text": ...} to what the shipped model keeps and chooses, token by token."""
    body = await request.body()
    if len(body) > MOST_BYTES:
        return _refused(f"a text has at most {MOST_BYTES:,} bytes", 413)
    try:
        text: Any = (await request.json())["text"]
    except (ValueError, KeyError, TypeError, RecursionError):
        text = None
    if not isinstance(text, str):
        return _refused('/api/trace takes {"text": "..."}', 400)
    from k3.reader.widgets import trace as traced

    return await _answer(traced.own, text)


async def _answer(work: Callable[..., Any], *given: Any) -> Response:
    try:
        return JSONResponse(await asyncio.to_thread(work, *given))
    except K3Error as error:
        return _refused(str(error), 400)


def _refused(words: str, status: int) -> Response:
    return JSONResponse({"error": words}, status)
