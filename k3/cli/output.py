"""What verbs print: JSON alone on standard output, notes on standard error."""

import json
import sys
from typing import Any


def json_value(value: Any) -> None:
    """Print one JSON value, laid out for reading."""
    print(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))


def json_line(value: Any) -> None:
    """Print one JSON value on a line of its own, at once."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False), flush=True)


def note(text: str) -> None:
    """A line for the person at the terminal, never in a pipe."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)
