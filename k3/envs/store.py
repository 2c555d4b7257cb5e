"""Trees of files by the hash of what is in them: what two share is kept once."""

import hashlib
import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from k3.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class Entry:
    """A path of a tree: "file" with its bytes, "dir", or "link" with its target."""

    path: str
    kind: str
    mode: int
    data: bytes = b""


class Store:
    """A folder of blobs named by SHA-256; a tree is a blob that lists others.

    Copy-on-write: a checkpoint costs the files that differ from earlier ones. Blobs
    are written aside and renamed, so that a kill leaves no half of one. Paths are
    data here and are never opened on this machine.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.written_bytes = 0

    def put(self, entries: Iterable[Entry]) -> str:
        """Keep a tree and return its key."""
        rows = [
            [e.path, e.kind, e.mode, self._keep(e.data)]
            for e in sorted(entries, key=lambda e: e.path)
        ]
        return self._keep(json.dumps(rows).encode())

    def get(self, tree: str) -> list[Entry]:
        """Return a tree's entries in the order of their paths.

        Raises: CheckpointError for a tree that is not there, or damaged.
        """
        rows = json.loads(self._read(tree))
        return [
            Entry(path, kind, mode, self._read(key)) for path, kind, mode, key in rows
        ]

    def _keep(self, data: bytes) -> str:
        key = hashlib.sha256(data).hexdigest()
        path = self._path(key)
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            aside = path.with_name(f".{key}.{secrets.token_hex(4)}")
            aside.write_bytes(data)
            aside.replace(path)
            self.written_bytes += len(data)
        return key

    def _read(self, key: str) -> bytes:
        try:
            data = self._path(key).read_bytes()
        except OSError as error:
            raise CheckpointError(
                f"a sandbox checkpoint needs its stored files: got {self.directory} "
                f"without {key[:12]} ({error.strerror}); keep the whole store"
            ) from error
        if hashlib.sha256(data).hexdigest() != key:
            raise CheckpointError(
                f"a stored file has the hash it is named by: got {self._path(key)} "
                "with other bytes; restore the store"
            )
        return data

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / key
