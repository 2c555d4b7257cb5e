"""Worked numbers: `{= k3.spec.situ:soft_cap(2., 4) | .6f =}` is computed, not typed.

An expression is Python in which `module:qualname` is that object of this package, and
`Fraction`, `array` (NumPy) and a few builtins are known. Behind the last ` | ` stands
a format: of `format()`, or `fraction` for p/q. Without one, `str`.
"""

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from k3.errors import ConfigError

PATTERN = re.compile(r"\{=\s*(.+?)\s*=\}", re.S)
_NAME = re.compile(r"\b(k3(?:\.\w+)+):([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_KNOWN: dict[str, Any] = {
    "Fraction": Fraction,
    "array": np.array,
    **{f.__name__: f for f in (abs, float, int, len, list, max, min, range, round)},
    **{f.__name__: f for f in (sum, tuple, zip, all, any, sorted)},
}


@dataclass(frozen=True, slots=True)
class Worked:
    """An expression and the text of its value."""

    expression: str
    shown: str


def find(text: str) -> Iterator[str]:
    """The expressions of a text."""
    return (found[1] for found in PATTERN.finditer(text))


@cache
def value(given: str) -> Worked:
    """The value of what stands between {= and =}. Raises: ConfigError."""
    expression, bar, form = given.rpartition(" | ")
    if not bar:
        expression, form = given, ""
    try:
        found = evaluate(expression)
        return Worked(expression.strip(), _shown(found, form.strip()))
    except Exception as error:
        raise ConfigError(
            f"a worked number must evaluate: {given!r} gives "
            f"{type(error).__name__}: {error}; mend the expression"
        ) from error


def evaluate(expression: str) -> Any:
    """The value of an expression that stands in a chapter."""
    names: dict[str, Any] = {}

    def name(found: re.Match[str]) -> str:
        made: Any = importlib.import_module(found[1])
        for part in found[2].split("."):
            made = getattr(made, part)
        short = f"_{len(names)}"
        names[short] = made
        return short

    code = _NAME.sub(name, expression).strip()
    # Expressions come from the package's own chapters, never from a request.
    return eval(code, {"__builtins__": {}, **_KNOWN, **names})


def substituted(text: str) -> str:
    """The text with every expression replaced by its value."""
    return PATTERN.sub(lambda found: value(found[1]).shown, text)


def _shown(found: Any, form: str) -> str:
    if isinstance(found, np.ndarray | list | tuple):
        return "[" + ", ".join(_shown(each, form) for each in found) + "]"
    if form == "fraction":
        return str(Fraction(found))
    if isinstance(found, Fraction) and form:
        return format(float(found), form)
    return format(found, form) if form else str(found)
