"""Special tokens: 256 places after the ranks, some named, the rest reserved.

A place is an offset; the id is the number of ranks plus the offset. Which places
are named is read from tokenizer_config.json. `released_config` writes that file
for a vocabulary of our own, with the released names at the released offsets.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from k3.errors import CheckpointError

FILE_NAME = "tokenizer_config.json"
NUM_SPECIALS = 256
ROLES = ("bos_token", "eos_token", "pad_token", "unk_token")

_ID = re.compile("[0-9]{1,12}")

RELEASED_OFFSETS = {
    "[BOS]": 0,
    "[EOS]": 1,
    "<|end_of_msg|>": 2,
    "<|open|>": 3,
    "<|close|>": 4,
    "<|sep|>": 5,
    "[start_header_id]": 6,
    "[end_header_id]": 7,
    "[EOT]": 9,
    "<|media_begin|>": 18,
    "<|media_content|>": 19,
    "<|media_end|>": 20,
    "<|media_pad|>": 21,
    "<osagent_mode>": 65,
    "[UNK]": 254,
    "[PAD]": 255,
}


def released_config(num_ranks: int) -> dict[str, Any]:
    """A tokenizer_config for `num_ranks` ranks with the released names."""
    return {
        "added_tokens_decoder": {
            str(num_ranks + offset): {"content": name, "special": True}
            for name, offset in RELEASED_OFFSETS.items()
        },
        "bos_token": "[BOS]",
        "eos_token": "[EOS]",
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
    }


def read(path: Path) -> dict[str, Any]:
    """The tokenizer_config as stored; empty when the file is absent.

    Raises: CheckpointError when it is not a JSON object.
    """
    if not path.exists():
        return {}
    try:
        config = json.loads(path.read_bytes())
    except OSError as fault:
        raise CheckpointError(
            f"{path.name} must be readable: {fault.strerror}; give {path} back"
        ) from fault
    except (ValueError, RecursionError) as fault:
        raise CheckpointError(
            f"{path.name} must be JSON: {fault}; restore the file"
        ) from None
    if not isinstance(config, dict):
        raise CheckpointError(
            f"{path.name} must be a JSON object: got {type(config).__name__}; "
            "restore the file"
        )
    return config


def ids(config: Mapping[str, Any], num_ranks: int) -> dict[str, int]:
    """All 256 special names with their ids: number of ranks + offset.

    Raises: CheckpointError for a place outside the 256 or a name given twice.
    """
    names = {n: f"<|reserved_token_{n}|>" for n in _places(num_ranks)}
    added = config.get("added_tokens_decoder", {})
    if not isinstance(added, Mapping):
        raise CheckpointError(
            "added_tokens_decoder must be an object that maps ids to tokens: got "
            f"{type(added).__name__}; mend {FILE_NAME}"
        )
    for key, entry in added.items():
        place, name = _entry(key, entry)
        if place not in names:
            raise CheckpointError(
                f"special tokens stand on the {NUM_SPECIALS} places after the ranks: "
                f"{name!r} has id {key} but they are {num_ranks} to "
                f"{num_ranks + NUM_SPECIALS - 1}; take both files from one release"
            )
        names[place] = name
    table = {name: place for place, name in names.items()}
    if len(table) < NUM_SPECIALS:
        twice = sorted(n for n in table if list(names.values()).count(n) > 1)
        raise CheckpointError(
            f"a special token has one place: {twice[0]!r} has several in {FILE_NAME}; "
            "restore the file"
        )
    return table


def roles(config: Mapping[str, Any], table: Mapping[str, int]) -> dict[str, int]:
    """Ids of bos_token, eos_token, pad_token and unk_token, where named.

    Raises: CheckpointError when a role names a token without a place.
    """
    found: dict[str, int] = {}
    for role in ROLES:
        name = config.get(role)
        if isinstance(name, dict):
            name = name.get("content")
        if name is None:
            continue
        if not isinstance(name, str) or name not in table:
            raise CheckpointError(
                f"{role} must be a special token: {name!r:.80} has no place in "
                f"added_tokens_decoder; mend {FILE_NAME}"
            )
        found[role] = table[name]
    return found


def _places(num_ranks: int) -> range:
    return range(num_ranks, num_ranks + NUM_SPECIALS)


def _entry(key: str, entry: Any) -> tuple[int, str]:
    content = entry.get("content") if isinstance(entry, dict) else None
    # Whatever int() takes is more than an id: ² is a digit, and 5000 of them are.
    if not _ID.fullmatch(key) or not isinstance(content, str) or not content:
        raise CheckpointError(
            'added_tokens_decoder maps an id to {"content": name}: got '
            f"{key!r:.80}: {entry!r:.80}; mend {FILE_NAME}"
        )
    return int(key), content
