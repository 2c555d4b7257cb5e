"""Where the tensors of a state lie, as the native step reads and leaves them.

Memories and windows that nobody else holds are written over: a step then makes no
tensor but its logits, and leaves every object of the state as it was.
"""

import ctypes
import operator
import threading
import weakref
from dataclasses import dataclass, field

import torch
from torch import Tensor

from k3.kernels import choose
from k3.kernels.native import alone, decode, pages
from k3.model.cache import KDACache, MLACache
from k3.model.decode_state import Cache, DecodeState
from k3.model.inputs import Inputs


@dataclass(slots=True)
class Left:
    """What a run leaves of every KDA layer: memories, windows, inputs if they are kept.

    `held` is what the kernel reads meanwhile.
    """

    states: list[Tensor]
    windows: list[Tensor]
    kept: list[Inputs] = field(default_factory=list)
    held: list[Tensor] = field(default_factory=list)


class Places(threading.local):
    """The addresses of a state's tensors; those of the last run's are known already.

    `run` is what the kernel is handed: each thread has its own.
    """

    def __init__(
        self, sizes: decode.Sizes, kinds: list[bool], trunk: torch.dtype, batch: int
    ) -> None:
        self.array = (decode.Carried * len(kinds))()
        self.lens = (ctypes.c_int64 * batch)()
        self.run = decode.Run(
            carried=ctypes.addressof(self.array), lens=ctypes.addressof(self.lens)
        )
        self._kda, self._trunk = kinds.count(False), trunk
        heads, K, V = sizes.kda_heads, sizes.K, sizes.V
        self._state = heads, V, K
        self._window = sizes.past, heads * (2 * K + V)
        self._made: list[weakref.ref[Tensor]] = []
        self._alone: alone.Alone | None = None
        self._room, self._stays = 0, False

    def know(self, state: DecodeState) -> bool:
        """Whether the tensors of a state are those that the last run left."""
        now: list[Tensor] = []
        for cache in state.caches:
            if type(cache) is MLACache:
                now.append(cache.rows)
            else:
                now += cache.state, cache.window  # type: ignore[union-attr]
        made = [ref() for ref in self._made]
        return (
            len(now) == len(made)
            and all(map(operator.is_, now, made))
            and all(c.lens == state.lens for c in state.caches if type(c) is MLACache)
        )

    def over(self, state: DecodeState, tokens: int) -> bool:
        """Whether a known state's next run may write over what the last one left.

        All of it is then where it was, and nobody but the state holds it.
        """
        if self._alone is None or max(state.lens) + tokens > self._room:
            return False
        return self._stays and not state.keep_inputs and self._alone.stand()

    def room(self, batch: int) -> Left:
        """Room for what a run leaves; unbound, so that one call makes all layers'."""
        self._alone, first = None, (self._kda, batch)
        states = torch.empty(*first, *self._state, dtype=torch.float32)
        windows = torch.empty(*first, *self._window, dtype=self._trunk)
        run = self.run
        run.states, run.windows = states.data_ptr(), windows.data_ptr()
        return Left([*states.unbind()], [*windows.unbind()])

    def enter(self, caches: list[Cache], tokens: int, left: Left) -> None:
        """Tell the kernel where these caches lie, and where inputs are kept."""
        self._room, self._stays, self._made = 2**62, True, []
        for place, cache in zip(self.array, caches, strict=True):
            if isinstance(cache, MLACache):
                _enter_rows(place, cache, max(cache.lens) + tokens)
                self._room = min(self._room, cache.rows.shape[1])
                continue
            before = cache.state.contiguous(), cache.window.contiguous()
            left.held += before
            place.state_in, place.window_in = (x.data_ptr() for x in before)
            self._keep(place, cache, tokens, left)

    def settle(self, caches: list[Cache], lens: tuple[int, ...], left: Left) -> None:
        """Let caches hold what the kernel has left, after so many tokens."""
        # Nobody has seen them yet, so that what is counted now is what they need.
        made = [*left.states, *left.windows] if self._stays else []
        rows = [cache.rows for cache in caches if isinstance(cache, MLACache)]
        self._alone = alone.Alone(made, rows) if made else None
        new = zip(left.states, left.windows, strict=True)
        kept = iter(left.kept)
        self.advance(caches, lens)
        for cache in caches:
            if isinstance(cache, MLACache):
                continue
            if cache.keep:
                cache._keep(next(kept))
            elif cache.counts:
                cache.forget()
            cache.state, cache.window = next(new)
        self._made = [weakref.ref(x) for cache in caches for x in _tensors(cache)]

    def advance(self, caches: list[Cache], lens: tuple[int, ...]) -> None:
        """Let the rows of caches end after so many tokens: all else is where it was."""
        for cache in caches:
            if type(cache) is MLACache:
                cache.lens = lens

    def _keep(
        self, place: decode.Carried, cache: KDACache, tokens: int, left: Left
    ) -> None:
        names = [f"kept_{name}" for name in ("raw", "k", "v", "g", "beta")]
        if not cache.keep:
            for name in names:
                setattr(place, name, None)
            return
        new = _inputs(cache, tokens)
        for name, x in zip(names, new.tensors(), strict=True):
            setattr(place, name, x.data_ptr())
        left.kept.append(new)
        self._stays = False


def usable(cache: Cache) -> bool:
    """Whether a cache lies in memory as the kernel reads it."""
    if isinstance(cache, MLACache):
        x = cache.rows
        fits = cache.table is None and x.stride()[1:] == (x.shape[2], 1)
        return fits and type(x) in choose.PLAIN and not x.requires_grad
    both = cache.state, cache.window
    return all(type(x) in choose.PLAIN and not x.requires_grad for x in both)


def _tensors(cache: Cache) -> tuple[Tensor, ...]:
    if type(cache) is MLACache:
        return (cache.rows,)
    assert isinstance(cache, KDACache)
    return cache.state, cache.window


def _enter_rows(place: decode.Carried, cache: MLACache, tokens: int) -> None:
    """Rows with room for so many tokens."""
    had = cache.rows
    cache._reserve(tokens)
    if cache.rows is not had:
        pages.enlarge([cache.rows])
    place.rows, place.stride = cache.rows.data_ptr(), cache.rows.stride(0)


def _inputs(cache: KDACache, T: int) -> Inputs:
    """Room for the inputs of T tokens."""
    B, H, V, K = cache.state.shape
    wide = torch.float32
    return Inputs(
        raw=cache.window.new_empty(B, T, cache.window.shape[2]),
        k=torch.empty(B, T, H, K, dtype=wide),
        v=torch.empty(B, T, H, V, dtype=wide),
        g=torch.empty(B, T, H, K, dtype=wide),
        beta=torch.empty(B, T, H, dtype=wide),
    )
