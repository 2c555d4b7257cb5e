"""Whether Python objects are as they were, told by a few words in memory of each.

CPython counts the changes of a dict in the dict; a tensor leads over its own object
and its storage's to its numbers. Where these words lie is found by experiment, once;
where one is not found (CPython from 3.13 on counts no more) nothing is marked, and the
caller looks at object after object, some hundred thousand cycles when they are cold.
"""

import ctypes
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from k3.kernels.native import library

OFFSET = 1234
"""Where a tensor of the experiment begins in its storage."""


class Words(NamedTuple):
    """Bytes from the start of an object to a word of it.

    `changes` of a dict; from a tensor to its implementation, from there to its storage
    and to where in that it begins, and from the storage to its memory.
    """

    changes: int
    tensor: int
    storage: int
    begin: int
    data: int


class Marks:
    """What the words of dicts and tensors are now; both are kept alive here."""

    def __init__(self, dicts: Iterable[Any], tensors: Iterable[Tensor]) -> None:
        self._alive = [*dicts], [*tensors]
        where = words()
        self._differs = ctypes.c_int64(where is None)
        if where is not None:
            at = _addresses(where, *self._alive)
            self._at = torch.tensor(at, dtype=torch.int64)
            self._now = torch.tensor([word(each) for each in at], dtype=torch.int64)
            self._given = (
                *(self._at.data_ptr(), self._now.data_ptr(), len(at)),
                ctypes.addressof(self._differs),
            )
            self._call = library.function("k3_words_differ", "ppip")

    def stand(self) -> bool:
        """Whether no dict has changed, and each tensor has its numbers where it had."""
        if words() is None:
            return False
        self._call(*self._given)
        return not self._differs.value


def _addresses(where: Words, dicts: list[Any], tensors: list[Tensor]) -> list[int]:
    """Those whose words, in this order, vouch for the objects of the next."""
    found = sorted({id(held) + where.changes for held in dicts})
    found += sorted({id(x) + where.tensor for x in tensors})
    inner = [x._cdata + o for x in tensors for o in (where.storage, where.begin)]
    found += sorted(set(inner))
    storages = {x.untyped_storage()._cdata + where.data for x in tensors}
    return found + sorted(storages)


def word(address: int) -> int:
    """Eight bytes of memory."""
    return ctypes.c_int64.from_address(address).value


@cache
def words() -> Words | None:
    """Where the words are in this process, or None where the experiment fails."""
    if sys.implementation.name != "cpython":
        return None
    changes = _only([_changes(kind) for kind in (_dict, OrderedDict, _attributes)])
    inside = [_only(found) for found in zip(*map(_tensor, _samples()), strict=True)]
    found = [place for place in (changes, *inside) if place is not None]
    return Words(*found) if len(found) == len(Words._fields) else None


def _only(offsets: Sequence[list[int]]) -> int | None:
    """The first offset that every experiment has found."""
    common = set.intersection(*map(set, offsets))
    return min(common, default=None)


def _dict() -> dict[str, Any]:
    return {}


def _attributes() -> dict[str, Any]:
    class Holder:
        def __init__(self) -> None:
            self.first = 1

    return vars(Holder())


def _changes(make: Callable[[], Any]) -> list[int]:
    """Words of a dict that change with its contents, and with nothing else."""
    held = make()
    held.update({str(i): object() for i in range(5)})
    places = range(16, dict.__basicsize__, 8)

    def now() -> list[int]:
        return [word(id(held) + place) for place in places]

    def differ(change: Callable[[], object]) -> list[bool]:
        before = now()
        change()
        return [a != b for a, b in zip(before, now(), strict=True)]

    changes = [
        *(lambda i=i: held.update({"1": i}) for i in range(40)),
        *(lambda i=i: held.__setitem__("2", [i]) for i in range(40)),
        *(lambda i=i: held.__setitem__(f"new {i}", i) for i in range(40)),
        *(lambda: held.pop("1"), lambda: held.setdefault("1", None), held.popitem),
        held.clear,
    ]
    looks = [lambda: held.get("1"), lambda: len(held), lambda: [*held.items()]]
    still = [differ(look) for look in looks * 20]
    moved = [differ(change) for change in changes]
    return [
        place
        for i, place in enumerate(places)
        if all(row[i] for row in moved) and not any(row[i] for row in still)
    ]


def _samples() -> list[Tensor]:
    whole = torch.arange(3 * OFFSET)
    weight = torch.nn.Parameter(torch.ones(2 * OFFSET)[OFFSET:], requires_grad=False)
    return [whole[OFFSET:], whole[OFFSET:].view(2, -1), weight]


def _tensor(x: Tensor) -> tuple[list[int], list[int], list[int], list[int]]:
    """Words that hold what torch says of a tensor; all lie inside its objects."""
    storage = x.untyped_storage()

    def among(start: int, places: range, value: int) -> list[int]:
        return [place for place in places if word(start + place) == value]

    return (
        among(id(x), range(16, Tensor.__basicsize__, 8), x._cdata),
        among(x._cdata, range(8, 64, 8), storage._cdata),
        among(x._cdata, range(64, 176, 8), OFFSET),
        among(storage._cdata, range(8, 40, 8), storage.data_ptr()),
    )
