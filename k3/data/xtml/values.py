"""Typed values: Python to the body of an argument, and the type of a JSON text."""

import json
from collections.abc import Mapping
from typing import Any

from k3.data.xtml import check
from k3.errors import RequestError

TYPES = ("string", "number", "boolean", "null", "object", "array")
_FIRST = {"{": "object", "[": "array", '"': "string", "n": "null"}


def type_of(value: Any, path: str) -> str:
    """The `type` attribute of a value.

    Raises: RequestError for what JSON cannot hold.
    """
    # bool is an int in Python, so it comes first.
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    for kinds, name in (
        (str, "string"),
        ((int, float), "number"),
        (Mapping, "object"),
        ((list, tuple), "array"),
    ):
        if isinstance(value, kinds):
            return name
    raise check.refuse(path, "a JSON value", value, "convert it first")


def body(value: Any, path: str) -> str:
    """The body of an argument: a string raw, anything else as `json.dumps` has it."""
    return value if isinstance(value, str) else _dumps(value, path)


def compact(value: Any, path: str) -> str:
    """Tools and schemas: keys sorted at every level, no spaces, non-ASCII kept."""
    return _dumps(value, path, sort_keys=True, separators=(",", ":"))


def arguments(value: Any, path: str) -> Mapping[Any, Any] | str:
    """Arguments of a past call: an object, or text that is not JSON as it came.

    Raises: RequestError for JSON that is not an object.
    """
    if value is None or isinstance(value, Mapping):
        return value or {}
    if not isinstance(value, str):
        raise check.refuse(path, "an object or its JSON text", value, "send an object")
    if not value.strip():
        return {}
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    if not isinstance(found, dict):
        raise check.refuse(path, "the JSON text of an object", value, "send an object")
    return found


def json_type(text: str) -> str | None:
    """The type that a JSON text has, or None when it is not JSON.

    NaN and Infinity are not JSON. Numbers of any size are: they are not converted.
    """
    try:
        json.loads(text, parse_int=len, parse_float=len, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    first = text.lstrip()[0]
    if first in "tf":
        return "boolean"
    return _FIRST.get(first, "number")


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _dumps(value: Any, path: str, **options: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, **options)
    except (TypeError, ValueError, RecursionError) as fault:
        raise RequestError(
            f"{path} must be a JSON value: {fault}; convert it first"
        ) from None
