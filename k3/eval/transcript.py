"""Transcripts: every answer of a run, kept as it comes, so that a run goes on.

A file of JSON lines: the first says what is run, each other one is an answer with its
scores and tokens. A line that a kill has cut is left out, and asked again.
"""

import fcntl
import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from k3.errors import RequestError

Record = dict[str, Any]
Asked = tuple[int, int]
"""An instance's index and the number of its sample."""


class Transcript:
    """The records of a run; without a file they are kept in memory alone.

    Raises: RequestError where the file is of another run, or another process writes.
    """

    def __init__(self, file: Path | None, header: Record) -> None:
        self.file, self.records = file, list[Record]()
        self._lock: int | None = None
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(file)
            try:
                self.records = _resume(file, header)
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> "Transcript":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def missing(self, count: int, samples: int) -> list[Asked]:
        """What is still to be asked, in order."""
        known = {(r["index"], r["sample"]) for r in self.records}
        return [
            (index, sample)
            for index in range(count)
            for sample in range(samples)
            if (index, sample) not in known
        ]

    def append(self, found: Sequence[Record]) -> None:
        """Keep answers: once this returns, no end of the process loses them."""
        if self.file is not None:
            text = "".join(json.dumps(record) + "\n" for record in found)
            with self.file.open("a", encoding="utf-8") as file:
                file.write(text)
        self.records += found

    def ordered(self) -> list[Record]:
        """All records by index and sample."""
        return sorted(self.records, key=lambda r: (r["index"], r["sample"]))

    def close(self) -> None:
        """Let others write."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def read(file: Path) -> tuple[Record, list[Record]]:
    """The header and the records of a transcript. Raises: RequestError."""
    lines = _lines(file)
    if not lines or not {"protocol", "facts"} <= set(lines[0]):
        raise RequestError(
            f"a transcript begins with its protocol: {file} does not; give a folder "
            "that k3 eval --out has written"
        )
    return lines[0], lines[1:]


def _resume(file: Path, header: Record) -> list[Record]:
    """The records that a file holds; it is begun where there is none."""
    lines = _lines(file) if file.is_file() else []
    wanted = json.loads(json.dumps(header))
    if lines and lines[0] != wanted:
        raise RequestError(
            f"a transcript is resumed by the run that began it: {file} is of another "
            f"protocol or model ({_difference(lines[0], wanted)}); choose another "
            "folder"
        )
    # Whole lines alone, so that the next one begins a line.
    aside = file.with_name(f".{file.name}.writing")
    aside.write_text("".join(json.dumps(line) + "\n" for line in lines or [wanted]))
    aside.replace(file)
    return lines[1:]


def _lines(file: Path) -> list[Record]:
    found = map(_parsed, file.read_bytes().splitlines())
    return [line for line in found if line is not None]


def _parsed(line: bytes) -> Record | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _difference(one: Record, two: Record) -> str:
    """The first condition or fact that two headers say differently."""
    for part in ("protocol", "facts"):
        a, b = one.get(part) or {}, two.get(part) or {}
        for key in sorted({*a, *b}):
            if a.get(key) != b.get(key):
                return f"{key} was {a.get(key)!s:.40}, is {b.get(key)!s:.40}"
    return "its first line differs"


def _locked(file: Path) -> int:
    """A lock that ends with the process, beside the file."""
    descriptor = os.open(file.with_name(f".{file.name}.lock"), os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise RequestError(
            f"a transcript has one writer: another process writes {file}; wait for "
            "it, or choose another folder"
        ) from error
    return descriptor
