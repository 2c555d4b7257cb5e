"""The site over HTTP, with `/api/eval` that runs a figure's equations in Python."""

import asyncio
import mimetypes
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from k3.errors import K3Error
from k3.reader import widgets
from k3.reader.site import site

MOST_BYTES = 100_000
TYPES = {".js": "text/javascript", ".woff2": "font/woff2", ".svg": "image/svg+xml"}


def app() -> Starlette:
    """The application; the pages are built at the first request."""
    return Starlette(
        routes=[
            Route("/api/eval", evaluate, methods=["POST"]),
            Route("/{path:path}", file, methods=["GET"]),
        ],
        middleware=[Middleware(GZipMiddleware, minimum_size=1000)],
    )


async def file(request: Request) -> Response:
    """A file of the site; a folder's address is its index, a name its page."""
    path = request.path_params["path"] or "index.html"
    found = await asyncio.to_thread(site)
    content = found.get(path, found.get(f"{path}.html"))
    if content is None:
        return Response("There is no such page.\n", 404, media_type="text/plain")
    suffix = path[path.rfind(".") :] if "." in path else ".html"
    kind = TYPES.get(suffix) or mimetypes.types_map.get(suffix, "text/html")
    return Response(content, media_type=kind, headers={"cache-control": "no-cache"})


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
    if name not in widgets.names() or not isinstance(state, dict):
        return _refused(f"there is no widget {str(name)[:80]}", 404)
    try:
        return JSONResponse(await asyncio.to_thread(widgets.evaluate, name, state))
    except K3Error as error:
        return _refused(str(error), 400)


def _refused(words: str, status: int) -> Response:
    return JSONResponse({"error": words}, status)
