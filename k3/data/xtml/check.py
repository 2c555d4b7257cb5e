"""Fields of a request, read with their path: every error sentence starts with it."""

from collections.abc import Mapping, Sequence
from typing import Any

from k3.errors import RequestError


def shown(value: Any, limit: int = 60) -> str:
    """A value for an error sentence: null, true, text in quotes, cut when long."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    if isinstance(value, bool):
        return str(value).lower()
    found = repr(value)
    return found if len(found) <= limit else found[:limit] + "…"


def refuse(path: str, rule: str, value: Any, remedy: str) -> RequestError:
    """The error to raise: the field, its rule, what came, what to do."""
    return RequestError(f"{path} must be {rule}: got {shown(value)}; {remedy}")


def string(value: Any, path: str, *, optional: bool = False) -> str:
    """A string; with `optional` null counts as the empty one."""
    if value is None and optional:
        return ""
    if not isinstance(value, str):
        rule = "a string or null" if optional else "a string"
        raise refuse(path, rule, value, "send text")
    return value


def name(value: Any, path: str) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value:
        raise refuse(path, "a string that is not empty", value, "give the name")
    return value


def flag(value: Any, path: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise refuse(path, "true or false", value, "send one of them")
    return value


def mapping(value: Any, path: str) -> Mapping[str, Any]:
    """An object."""
    if not isinstance(value, Mapping):
        raise refuse(path, "an object", value, "send a JSON object")
    return value


def sequence(value: Any, path: str, *, optional: bool = False) -> Sequence[Any]:
    """A list; with `optional` null counts as the empty one."""
    if value is None and optional:
        return ()
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise refuse(path, "a list", value, "send a JSON array")
    return value


def one_of(value: Any, path: str, allowed: Sequence[str], remedy: str) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise refuse(path, f"one of {', '.join(allowed)}", value, remedy)
    return value
