"""What verbs print: JSON alone on standard output, notes on standard error."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from typing import Any

WIDTH = 88


class Interrupted(Exception):
    """An interruption of which there is more to say than that it was one."""


@contextmanager
def streams() -> Iterator[None]:
    """Make the standard streams safe to use: open, and able to write any text.

    A closed descriptor reads as empty and is written to nowhere. What the terminal's
    encoding lacks, and a lone surrogate of a file name, is escaped.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    with ExitStack() as opened:
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            stream = getattr(sys, name)
            if stream is None or stream.closed:
                stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115
                setattr(sys, name, opened.enter_context(stream))
            elif mode == "w" and isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = before


def silence() -> None:
    """Send what standard output still holds to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def json_value(value: Any) -> None:
    """Print one JSON value, laid out for reading."""
    print(laid_out(value))


def json_line(value: Any) -> None:
    """Print one JSON value on a line of its own, at once."""
    print(_flat(value), flush=True)


def laid_out(value: Any, indent: str = "") -> str:
    """JSON with a line for each entry, but numbers and short entries side by side."""
    if not isinstance(value, dict | list | tuple) or not value:
        return _flat(value)
    inside = list(value.values() if isinstance(value, dict) else value)
    if not any(isinstance(each, dict | list | tuple) for each in inside):
        flat = _flat(value)
        numbers = all(isinstance(each, int | float) for each in inside)
        if numbers and not isinstance(value, dict):
            return flat
        if indent and len(indent) + len(flat) < WIDTH:
            return flat
    deeper = indent + "  "
    rows = [laid_out(each, deeper) for each in inside]
    if isinstance(value, dict):
        rows = [f"{_flat(str(k))}: {row}" for k, row in zip(value, rows, strict=True)]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n{deeper}" + f",\n{deeper}".join(rows) + f"\n{indent}{last}"


def quoted(text: str | None) -> str:
    """A token's text in quotes, so that spaces and line ends are seen."""
    return "-" if text is None else _flat(text)


def note(text: str) -> None:
    """A line for the person at the terminal, never in a pipe."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def warn(text: str) -> None:
    """A line on standard error that also a pipe's log should hold."""
    print(f"k3: note: {text}", file=sys.stderr)


def echo(text: str) -> None:
    """What is continued, dimmed, before its continuation; nothing in a pipe."""
    if not sys.stdout.isatty():
        return
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    print(text if plain else f"\x1b[2m{text}\x1b[0m", end="", flush=True)


def _flat(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        # As JSON escapes it, so that every reader gets JSON.
        return json.dumps(value, allow_nan=False)
    return text
