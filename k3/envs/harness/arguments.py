"""Arguments of calls: whether they are what a tool takes, told in a sentence."""

import json
from collections.abc import Mapping
from typing import Any

from k3.data.xtml import values


def misfit(
    given: Mapping[str, Any],
    properties: Mapping[str, Mapping[str, Any]],
    required: tuple[str, ...],
) -> str:
    """What is wrong with arguments, or "": keys, types and choices."""
    for key, value in given.items():
        if key not in properties:
            return f"the arguments are {', '.join(properties)}; got {key!r}"
        schema = properties[key]
        wanted = schema.get("type")
        if wanted is not None and not _is(value, wanted):
            return f"{key} must be of type {wanted}; got {json.dumps(value)[:80]}"
        if "enum" in schema and value not in schema["enum"]:
            return f"{key} must be one of {schema['enum']}; got {value!r}"
    missing = [key for key in required if key not in given]
    return f"{', '.join(missing)} must be given" if missing else ""


def _is(value: Any, wanted: str) -> bool:
    if wanted == "integer":
        return type(value) is int
    return values.type_of(value, "value") == wanted


def parsed(given: str) -> dict[str, Any] | str:
    """The object that a JSON text is, or a sentence where it is none."""
    try:
        found = _loads(given or "{}")
        # Half of a surrogate pair can be written as JSON, but in no file or mail.
        whole = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
        found = _loads(whole.decode())
    except (ValueError, RecursionError) as fault:
        return f"Error: the arguments must be a JSON object: {str(fault)[:80]}."
    if not isinstance(found, dict):
        return "Error: the arguments must be a JSON object: got another value."
    return found


def typed(part: str, schema: Mapping[str, Any]) -> Any:
    """A word of a line as its schema wants it; what does not fit is told later."""
    if schema.get("type") in ("integer", "number", "boolean", "array", "object"):
        try:
            return _loads(part)
        except (ValueError, RecursionError):
            return part
    return part


def _loads(given: str) -> Any:
    return json.loads(given, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
