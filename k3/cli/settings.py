"""`--set KEY=VALUE`: parsed as JSON where it is JSON, refused where it is unknown."""

import difflib
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from k3.errors import RequestError

# Of a number: more digits than any count has, fewer than int and float refuse.
_LONGEST = 24
_UNITS = {"": 1, "k": 10**3, "m": 10**6}


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


def tokens(option: str) -> Callable[[str | int], int]:
    """A reader of the option's number of tokens: 4096, 100k or 1M."""

    def read(given: str | int) -> int:
        text = str(given).strip()
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKM]?)", text[:_LONGEST])
        count = float(found[1]) * _UNITS[found[2].lower()] if found else -1.0
        if len(text) > _LONGEST or count < 0 or not count.is_integer():
            raise RequestError(
                f"{option} needs a whole number of tokens, such as 4096, 100k or 1M: "
                f"got {text!r:.80}"
            )
        return int(count)

    return read


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
    except (ValueError, RecursionError):
        # JSON, but a number of thousands of digits, or brackets without an end.
        raise RequestError(
            f"--set {key.strip()} has a value that no setting can be: got "
            f"{value[:20]}... of {len(value):,} characters"
        ) from None
