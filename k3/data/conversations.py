"""Conversations in a JSONL file: one request and its answer a line, as examples."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from k3.data.examples import Example, of_conversation
from k3.data.limits import ImageLimits
from k3.data.tokenizer import Tokenizer
from k3.data.xtml import RenderOptions
from k3.errors import K3Error, RequestError

OPTIONS = ("tools", "thinking", "thinking_effort", "tool_choice", "response_format")
KEYS = ("messages", "images", *OPTIONS)


def read(
    path: str | Path, tokenizer: Tokenizer, limits: ImageLimits, domain: str = "sft"
) -> list[Example]:
    """Every line of a file as an example, in the domain of its effort.

    A line is an object: `messages` as the server takes them, the options of a request
    by their names there, and `images`, the files of the image parts in order, beside
    the JSONL file. An effort of "low" gives the domain "sft:low".
    Raises: RequestError naming the first wrong line.
    """
    file = Path(path)
    found = []
    for number, record in _records(file):
        try:
            found.append(_example(record, file.parent, tokenizer, limits, domain))
        except K3Error as fault:
            raise RequestError(f"{file.name} line {number}: {fault}") from None
    if not found:
        raise RequestError(f"{file} must hold conversations: got none; add lines")
    return found


def sha256(path: str | Path) -> str:
    """The hash of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as fault:
        raise RequestError(
            f"conversations are read from a file: {path} ({fault.strerror}); give its "
            "path"
        ) from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as fault:
            raise RequestError(
                f"{path.name} line {number}: a line must be JSON: {fault}; mend it"
            ) from None
        yield number, record


def _example(
    record: Any,
    folder: Path,
    tokenizer: Tokenizer,
    limits: ImageLimits,
    domain: str,
) -> Example:
    if not isinstance(record, dict) or "messages" not in record:
        raise RequestError(
            "a conversation is an object with messages: got "
            f"{type(record).__name__}; add them"
        )
    unknown = [key for key in record if key not in KEYS]
    if unknown:
        raise RequestError(
            f"{unknown[0]} is no key of a conversation: those are {', '.join(KEYS)}; "
            "remove it"
        )
    wanted = RenderOptions(**{key: record[key] for key in OPTIONS if key in record})
    effort = (wanted.thinking_effort if wanted.thinking else None) or "none"
    example = of_conversation(
        record["messages"],
        tokenizer,
        f"{domain}:{effort}",
        wanted=wanted,
        pictures=[folder / str(name) for name in record.get("images") or ()],
        limits=limits,
    )
    if not example.learned.any():
        raise RequestError(
            "messages must hold an answer to learn from: got none of an assistant; "
            "add one"
        )
    return example
