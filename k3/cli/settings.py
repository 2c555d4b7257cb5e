"""`--set KEY=VALUE`: parsed as JSON where it is JSON, refused where it is unknown."""

import difflib
import json
from collections.abc import Iterable
from typing import Any

from k3.errors import RequestError


def parse(pairs: Iterable[str]) -> dict[str, Any]:
    """The values by key, the last one winning."""
    return dict(_pair(text) for text in pairs)


def refuse_unknown(given: Iterable[str], known: Iterable[str]) -> None:
    """Raise for keys that nothing reads, with the nearest that exist."""
    names = sorted(known)
    for key in given:
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}"
            raise RequestError(f"--set needs a key that exists: got {key}; {hint}")


def one_of(option: str, value: str, allowed: Iterable[str]) -> str:
    """The value of an option that takes one of a few words."""
    words = list(allowed)
    if value not in words:
        raise RequestError(
            f"{option} must be one of {', '.join(words)}: got {value!r}; choose one"
        )
    return value


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise RequestError(
            f"--set needs KEY=VALUE: got {text!r}; write the equals sign"
        )
    try:
        return key.strip(), json.loads(value)
    except json.JSONDecodeError:
        return key.strip(), value
