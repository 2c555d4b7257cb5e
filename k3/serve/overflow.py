"""States of prefixes on disk (lmdb), found again after a restart.

What ended a turn is written through: the rows of every hash block once, and the
checkpoint. Values carry a digest; a damaged one is a miss.
"""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from k3.errors import RequestError
from k3.model import DecodeState
from k3.serve.layout import Layout

DIGEST_BYTES = 16


def _lmdb() -> Any:
    try:
        import lmdb
    except ImportError:
        raise RequestError(
            "the overflow tier keeps states in lmdb, which is not installed: "
            "pip install 'k3[serve]'"
        ) from None
    return lmdb


class Overflow:
    """A folder of prefixes, at most `max_bytes` large; full, it takes no more.

    Keys hold the weights' name, not a count: give the cache `weights=...`.
    """

    def __init__(self, path: Path | str, max_bytes: int = 2**30) -> None:
        self._full = _lmdb().MapFullError
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._env = _lmdb().open(str(path), map_size=max_bytes)
        except (OSError, _lmdb().Error) as fault:
            raise RequestError(
                f"the folder of states {path} cannot be opened: {fault}; name another, "
                "or delete it: what it holds can be computed again"
            ) from fault
        # What a process that was killed was reading holds no page any longer.
        self._env.reader_check()

    def close(self) -> None:
        """Let go of the files; what was committed stays."""
        self._env.close()

    def clear(self) -> None:
        """Forget everything on disk."""
        with self._env.begin(write=True) as transaction:
            transaction.drop(self._env.open_db(txn=transaction), delete=False)

    def save(self, keys: Sequence[bytes], layout: Layout, state: DecodeState) -> bool:
        """Write the rows that are not there and the checkpoint, all or nothing.

        False if the disk's share is full.
        """
        unit = layout.options.hash_tokens
        try:
            with self._env.begin(write=True) as transaction:
                for at, key in enumerate(keys):
                    if transaction.get(b"rows" + key) is None:
                        span = range(at * unit, (at + 1) * unit)
                        rows = layout.rows_of(state, span)
                        transaction.put(b"rows" + key, _sealed(rows))
                groups = range(len(layout.groups))
                tensors = [x for g in groups for x in layout.tensors(state, g)]
                transaction.put(b"kda" + keys[-1], _sealed(tensors))
        except self._full:
            return False
        return True

    def find(self, keys: Sequence[bytes], above: int = 0) -> int:
        """The longest end, beyond `above`, with its rows and its checkpoint."""
        with self._env.begin() as transaction:
            cursor = transaction.cursor()
            reached = 0
            while reached < len(keys) and cursor.set_key(b"rows" + keys[reached]):
                reached += 1
            ends = range(reached, above, -1)
            return next((n for n in ends if cursor.set_key(b"kda" + keys[n - 1])), 0)

    def load(
        self, keys: Sequence[bytes], layout: Layout, fresh: DecodeState
    ) -> DecodeState | None:
        """Fill a fresh state with that of keys; None if anything is damaged."""
        with self._env.begin() as transaction:
            values = [_opened(transaction.get(b"rows" + key)) for key in keys]
            kda = _opened(transaction.get(b"kda" + keys[-1]))
        if kda is None or any(value is None for value in values):
            return None
        shape = (len(layout.mla), layout.options.hash_tokens, layout.row_width)
        parts = [v.view(layout.row_dtype).view(shape) for v in values if v is not None]
        rows = torch.cat(parts, 1).to(layout.device)
        groups = []
        for group in range(len(layout.groups)):
            size = layout.group_bytes[group]
            # A copy, so that it starts where any dtype may be read.
            groups.append(layout.split(kda[:size].clone(), group))
            kda = kda[size:]
        return layout.build(fresh, list(rows[:, None]), groups)


def _sealed(tensors: Sequence[Tensor]) -> bytes:
    flat = [x.detach().cpu().contiguous().flatten().view(torch.uint8) for x in tensors]
    data = torch.cat(flat).numpy().tobytes()
    return blake2b(data, digest_size=DIGEST_BYTES).digest() + data


def _opened(value: bytes | None) -> Tensor | None:
    if value is None or len(value) <= DIGEST_BYTES:
        return None
    digest, data = value[:DIGEST_BYTES], value[DIGEST_BYTES:]
    if blake2b(data, digest_size=DIGEST_BYTES).digest() != digest:
        return None
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)
