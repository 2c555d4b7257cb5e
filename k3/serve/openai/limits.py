"""What comes over the wire, before it means anything: its size, its key, its JSON."""

import hmac
import json
from hashlib import blake2b
from typing import Any, NoReturn

from starlette.requests import Request

from k3.serve.openai.errors import ApiError, invalid

OPEN_PATHS = ("/health", "/ping", "/metrics", "/version")


def tenant(request: Request, keys: tuple[str, ...]) -> bytes:
    """The salt of the caller's prefix cache: a digest of its key, empty without keys.

    Raises: ApiError 401.
    """
    if not keys:
        return b""
    given = request.headers.get("authorization", "")
    scheme, _, token = given.partition(" ")
    if scheme.lower() != "bearer":
        token = request.headers.get("x-api-key", "")
    token = token.strip()
    # Every key is compared, so that the time says nothing about which one is near.
    found = [hmac.compare_digest(token.encode(), key.encode()) for key in keys]
    if not any(found):
        raise ApiError(
            401,
            "an API key is needed: send the header Authorization: Bearer KEY with a "
            "key of this server",
            code="invalid_api_key",
            headers={"www-authenticate": "Bearer"},
        )
    return salt(token)


def salt(secret: str) -> bytes:
    """A digest that keeps one tenant's cached prefixes from another's."""
    data = secret.encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=32, person=b"k3 tenant").digest()


async def read_json(request: Request, most_bytes: int) -> dict[str, Any]:
    """The body as a JSON object.

    Raises: ApiError 413 for more than `most_bytes`, 400 for what is no JSON object.
    """
    body = parse(await read(request, most_bytes))
    if not isinstance(body, dict):
        raise invalid(
            f"the body must be a JSON object: got {type(body).__name__}; send "
            '{"model": ..., ...}'
        )
    return body


async def read(request: Request, most_bytes: int) -> bytes:
    """The body, read no further than its limit."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > most_bytes:
        raise _too_large(most_bytes)
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > most_bytes:
            raise _too_large(most_bytes)
    return bytes(data)


def parse(data: bytes) -> Any:
    """JSON text as values; NaN, Infinity and endless brackets are refused."""
    try:
        return json.loads(data, parse_constant=_no_number)
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as fault:
        reason = str(fault)
    raise invalid(f"the body must be JSON: {reason}; mend it", code="invalid_json")


def dumps(value: Any) -> str:
    """JSON text that is always UTF-8: a lone surrogate is escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text


def _too_large(most_bytes: int) -> ApiError:
    return ApiError(
        413,
        f"the body may have {most_bytes} bytes: got more; send less, or smaller images",
        code="request_too_large",
    )


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")
