"""A folder of shards and DATA.json, which says what they are and where from."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from k3.data import shards
from k3.data.examples import Example
from k3.data.shards import Shard
from k3.data.tokenizer import Tokenizer
from k3.errors import CheckpointError, RequestError

FILE_NAME = "DATA.json"
FORMAT = "k3 data 1"
SHARD_TOKENS = 2**25


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """What DATA.json says, and the shards of each split."""

    directory: Path
    facts: dict[str, Any]
    splits: dict[str, list[Shard]]

    @property
    def name(self) -> str:
        """The corpus."""
        return str(self.facts["name"])

    def check(self, tokenizer: Tokenizer) -> None:
        """Refuse a tokenizer that is not the one that the ids are of.

        Raises: CheckpointError.
        """
        if fingerprint(tokenizer) != self.facts["tokenizer"]:
            raise CheckpointError(
                f"ids are read with the tokenizer that wrote them: {self.directory} "
                "has those of another; build the data again with this one"
            )


def load(directory: str | Path, *, verify: bool = True) -> Store:
    """Open a folder; `verify` reads every file once to compare its hash.

    Raises: CheckpointError for a file that is absent or not the one that was written.
    """
    directory = Path(directory)
    facts = _facts(directory / FILE_NAME)
    try:
        found = {
            split: [_shard(directory, entry, verify) for entry in entries["shards"]]
            for split, entries in facts["splits"].items()
        }
    except (KeyError, TypeError, AttributeError) as fault:
        raise _broken(directory / FILE_NAME, f"it lacks {fault}") from None
    return Store(directory, facts, found)


def fingerprint(tokenizer: Tokenizer) -> str:
    """A hash of all that decides which ids a text has."""
    digest = hashlib.sha256()
    for token, _ in sorted(tokenizer.ranks.items(), key=lambda item: item[1]):
        digest.update(len(token).to_bytes(4, "little") + token)
    digest.update(json.dumps(tokenizer.named_specials, sort_keys=True).encode())
    return digest.hexdigest()


class Writer:
    """The shards of one split, written as they fill up."""

    def __init__(self, directory: Path, split: str, tokens: int = SHARD_TOKENS) -> None:
        self._directory, self._split, self._limit = directory, split, tokens
        self._held: list[Example] = []
        self._tokens = 0
        self.shards: list[dict[str, Any]] = []

    def add(self, example: Example) -> None:
        """Append a document."""
        if self._held and self._tokens + len(example) > self._limit:
            self.flush()
        self._held.append(example)
        self._tokens += len(example)

    def flush(self) -> None:
        """Write what is held as one shard."""
        if not self._held:
            return
        file = f"{self._split}-{len(self.shards):05d}.safetensors"
        shards.write(self._directory / file, self._held)
        entry = {"file": file, "documents": len(self._held), "tokens": self._tokens}
        self.shards.append(entry | measured(self._directory / file))
        self._held, self._tokens = [], 0


def measured(path: Path) -> dict[str, Any]:
    """Size and hash of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


@contextmanager
def writing(directory: Path) -> Iterator[Path]:
    """A folder beside `directory` that takes its name when all went well.

    Raises: RequestError for a directory that holds something.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise RequestError(
            f"data is written to a new folder: got {directory} with files in it; "
            "choose another or remove it"
        )
    part = directory.with_name(f".{directory.name}.{os.getpid()}.part")
    part.mkdir(parents=True)
    try:
        yield part
        part.replace(directory)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def write_facts(directory: Path, facts: dict[str, Any]) -> None:
    """Write DATA.json."""
    text = json.dumps({"format": FORMAT} | facts, indent=2, ensure_ascii=False) + "\n"
    shards.replace(directory / FILE_NAME, text.encode())


def _shard(directory: Path, entry: dict[str, Any], verify: bool) -> Shard:
    path = directory / str(entry["file"])
    if path.parent != directory:
        raise _broken(directory / FILE_NAME, f"it names {entry['file']!r}")
    found = shards.read(path)
    size = path.stat().st_size
    if size != entry["bytes"] or len(found.tokens) != entry["tokens"]:
        raise _broken(path, f"{size} bytes, {len(found.tokens)} tokens")
    if verify and measured(path)["sha256"] != entry["sha256"]:
        raise _broken(path, "another sha256")
    return found


def _facts(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_bytes())
    except OSError as fault:
        raise CheckpointError(
            f"data lies in a folder with {FILE_NAME}: {path} cannot be read "
            f"({fault.strerror}); run k3 data build"
        ) from None
    except (ValueError, RecursionError) as fault:
        raise _broken(path, f"no JSON: {fault}") from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise _broken(path, f"its format is not {FORMAT!r}")
    return facts


def _broken(path: Path, why: str) -> CheckpointError:
    return CheckpointError(
        f"data is what {FILE_NAME} says: {path} is not ({why}); build it again"
    )
