"""The ranks file: one `base64(token bytes) rank` per line, rank 0 first.

A token's rank is both its id and its merge priority, so the file is the whole
vocabulary of ordinary text.
"""

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path

from k3.errors import CheckpointError

FILE_NAME = "tiktoken.model"


def read(path: Path) -> dict[bytes, int]:
    """Ranks of a file, checked: ids 0..n-1 once each, every single byte present.

    Raises: CheckpointError naming the line or the missing entry.
    """
    if not path.is_file():
        raise CheckpointError(
            f"a tokenizer needs its ranks file: {path} is absent; "
            "load another directory or generate by ids"
        )
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        token, rank = _line(line, f"{path.name} line {number}")
        if token in ranks:
            raise CheckpointError(
                f"a token may stand once in the ranks file: {path.name} line {number} "
                f"repeats {token!r} of rank {ranks[token]}; restore the file"
            )
        ranks[token] = rank
    check(ranks, path.name)
    return ranks


def check(ranks: Mapping[bytes, int], source: str) -> None:
    """Refuse ranks that are not 0..n-1 once each or that miss a single byte.

    Raises: CheckpointError.
    """
    seen: set[int] = set()
    for token, rank in ranks.items():
        if rank in seen:
            raise CheckpointError(
                f"a rank may be given once: {source} gives rank {rank} again, "
                f"to {token!r}; restore the file"
            )
        seen.add(rank)
    gap = next((n for n in range(len(ranks)) if n not in seen), None)
    if gap is not None:
        raise CheckpointError(
            f"ranks must run from 0 without a gap: {source} holds {len(ranks)} tokens "
            f"but no rank {gap}; restore the file"
        )
    missing = [b for b in range(256) if bytes([b]) not in ranks]
    if missing:
        raise CheckpointError(
            f"every single byte needs a rank: {source} misses {len(missing)}, "
            f"the first is 0x{missing[0]:02x}; restore the file"
        )


def write(ranks: Mapping[bytes, int], path: Path) -> None:
    """Write the ranks in order, to a temporary name that is then renamed."""
    lines = (
        base64.b64encode(token) + b" %d\n" % rank
        for token, rank in sorted(ranks.items(), key=lambda item: item[1])
    )
    replace(path, b"".join(lines))


def replace(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step, so that no reader sees half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(path)


def _line(line: bytes, where: str) -> tuple[bytes, int]:
    fields = line.split()
    try:
        token, rank = base64.b64decode(fields[0], validate=True), int(fields[1])
        if len(fields) != 2 or not token or not fields[1].isdigit():
            raise ValueError
    except (IndexError, ValueError, binascii.Error):
        shown = line[:40].decode("ascii", "backslashreplace")
        raise CheckpointError(
            f"a line of the ranks file must be 'base64 rank': {where} is "
            f"{shown!r}; restore the file"
        ) from None
    return token, rank
