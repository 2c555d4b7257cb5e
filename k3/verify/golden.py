"""A file of the released model's numbers: what it holds and in what order."""

import json
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from k3.errors import CheckpointError

INPUTS = {
    "ids",
    "prompt_len",
    "greedy_prompt",
    "grids",
    "pixel_values",
    "mm_ids",
    "mm_grids",
    "config",
    "salt",
    "param_shapes",
}
# The order of the computation, so that the first difference is the first cause.
OUTPUTS = [
    r"proj_\d+",
    r"layers\.\d+\..+",
    "logits_prefill",
    "logits_decode",
    r"state_\d+",
    "logits_full",
    "greedy_tokens",
    "mm_logits",
]

# All that numpy raises for a file that is empty, cut, of another kind or too large.
_UNREADABLE = (
    *(OSError, ValueError, EOFError, KeyError, MemoryError, NotImplementedError),
    *(OverflowError, SyntaxError, zipfile.BadZipFile, zlib.error),
)


@dataclass(frozen=True, slots=True)
class Golden:
    """The arrays of one file by key."""

    path: Path
    arrays: dict[str, NDArray[Any]]

    @classmethod
    def load(cls, path: str | Path) -> "Golden":
        """Read an npz file; nothing in it is executed."""
        path = Path(path)
        try:
            with path.open("rb") as stream:
                file = np.load(stream, allow_pickle=False)
                if not isinstance(file, np.lib.npyio.NpzFile):
                    raise ValueError("it holds one array without a name")
                return cls(path, {key: file[key] for key in file.files})
        except _UNREADABLE as error:
            raise CheckpointError(
                f"golden numbers come from a readable .npz file: got {path} ({error}); "
                f"give a file written by numpy.savez"
            ) from error

    def __contains__(self, key: str) -> bool:
        return key in self.arrays

    def __getitem__(self, key: str) -> NDArray[Any]:
        if key not in self.arrays:
            raise CheckpointError(
                f"{self.path} must hold {key} beside what it holds: got "
                f"{', '.join(sorted(self.arrays))}; add it or leave out what needs it"
            )
        return self.arrays[key]

    def json(self, key: str) -> Any:
        """A value stored as JSON text."""
        try:
            return json.loads(str(self[key]))
        except (ValueError, RecursionError) as error:
            raise CheckpointError(
                f"{key} in {self.path} must be JSON text: {error}; write it anew"
            ) from None

    def expected(self) -> list[str]:
        """The keys that a model must reproduce, in the order of the computation."""
        return sorted(
            (key for key in self.arrays if _rank(key) is not None),
            key=lambda key: (_rank(key) or 0, _numbers(key)),
        )

    def unknown(self) -> list[str]:
        """Keys that are neither an input nor something to reproduce."""
        return [key for key in self.arrays if key not in INPUTS and _rank(key) is None]


def _rank(key: str) -> int | None:
    matches = (i for i, form in enumerate(OUTPUTS) if re.fullmatch(form, key))
    return next(matches, None)


def _numbers(key: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", key))
