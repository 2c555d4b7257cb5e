"""Whether some tensors are held by one holder alone, so that they may be written over.

Python counts who holds a tensor, torch counts who holds what is behind it: other
tensors over the same memory, and programs in C++. Where these counts are is found by
experiment, once; where one is not found no tensor is said to be alone.
"""

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils import dlpack

from k3.kernels.native import library, marks
from k3.kernels.native.marks import word


class Counts(NamedTuple):
    """Bytes from a tensor, from its implementation and from its storage to a count."""

    object: int
    tensor: int
    storage: int


class Alone:
    """The counts of tensors that nobody has seen yet but the one who asks.

    They are not kept alive here: whoever calls `stand` knows that they live. Others
    may hold `still`, which only have to lie where they did, as all these have to.
    """

    def __init__(self, tensors: Sequence[Tensor], still: Sequence[Tensor] = ()) -> None:
        where, inside = counts(), marks.words()
        self._differs = ctypes.c_int64(1)
        self._found = where is not None and inside is not None
        if where is None or inside is None:
            return
        # Asked for by name, a storage would be held by Python from then on.
        inner = _memory(inside, [*tensors, *still])
        inner += [x._cdata + where.tensor for x in tensors]
        storages = {word(x._cdata + inside.storage) for x in tensors}
        inner += [at + where.storage for at in storages]
        # A base that is asked for by name shows in its own counts alone.
        views = [x for x in tensors if x._is_view()]
        inner += {x._base._cdata + where.tensor for x in views}  # type: ignore[union-attr]
        inner += {id(x._base) + where.object for x in views}
        # One holder, the same one as later, holds each object.
        at = [id(x) + where.object for x in tensors] + inner
        was = [1] * len(tensors) + [word(each) for each in inner]
        self._at, self._was = (torch.tensor(x, dtype=torch.int64) for x in (at, was))
        self._given = (
            *(self._at.data_ptr(), self._was.data_ptr(), len(at)),
            ctypes.addressof(self._differs),
        )
        self._call = library.function("k3_words_differ", "ppip")

    def stand(self) -> bool:
        """Whether each is held once, by Python, its memory by these, and none moved."""
        if not self._found:
            return False
        self._call(*self._given)
        return not self._differs.value


def _memory(inside: marks.Words, tensors: Sequence[Tensor]) -> list[int]:
    """Words that lead to the memory of tensors; three say where it is and whose."""
    leads = [x._cdata + inside.storage for x in tensors]
    storages = {word(each) + inside.data for each in leads}
    return leads + [at + next_ for at in storages for next_ in (0, 8, 16)]


@cache
def counts() -> Counts | None:
    """Where the counts are in this process, or None where the experiment fails."""
    if sys.implementation.name != "cpython" or marks.words() is None:
        return None
    x, other = torch.ones(3), torch.ones(3)
    found = [
        _rises(id(x), range(0, 32, 8), lambda: [x]),
        _rises(x._cdata, range(8, 32, 8), lambda: dlpack.to_dlpack(x)),
        _rises(x.untyped_storage()._cdata, range(8, 32, 8), lambda: x.view(-1)),
    ]
    if other.numel() != len(found) or word(id(other) + (found[0] or 0)) != 1:
        return None
    return Counts(*found) if None not in found else None  # type: ignore[arg-type]


def _rises(start: int, places: range, hold: Callable[[], Any]) -> int | None:
    """The first word that differs while something more is held, and only then."""

    def now() -> list[int]:
        return [word(start + place) for place in places]

    before = now()
    held = hold()
    during = now()
    del held
    rows = zip(places, before, during, now(), strict=True)
    return next((at for at, a, b, c in rows if a != b and a == c), None)
