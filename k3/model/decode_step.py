"""The next tokens of every sequence through all layers in one native call.

A plan holds where the weights are; it is made anew when one of them has moved.
"""

import ctypes
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from k3.kernels import choose
from k3.kernels.native import decode, pages
from k3.model import cache as caches
from k3.model.addresses import Addresses
from k3.model.cache import KDACache, MLACache
from k3.model.decode_state import Cache, DecodeState
from k3.model.taps import Taps, record
from k3.model.watched import Watched

if TYPE_CHECKING:
    from k3.model.model import Model

MAX_BATCH = 16
"""Sequences of a step; beyond it matrix products of PyTorch are the faster way."""

MAX_TOKENS = 16
"""Tokens of each that one call runs, a drafted block: beyond it PyTorch takes them."""

MAX_LAYERS = 250
"""Depth sources that the kernel has room for, less the running sum."""


class Plan:
    """A model's weights as the native step reads them."""

    def __init__(self, model: "Model") -> None:
        text = model.language_model
        self.watched = Watched(text)
        self.fits = self.watched.plain and text.model.num_layers <= MAX_LAYERS
        if not self.fits:
            return
        pages.enlarge(self.watched.weights)
        self.is_bf16 = model.dtype == torch.bfloat16
        self.addresses = Addresses(text, model.config.text)
        self._made: list[weakref.ref[Tensor]] = []

    def knows(self, state: DecodeState) -> bool:
        """Whether the tensors of a state are those that this plan's last run made."""
        now = [x for cache in state.caches for x in _tensors(cache)]
        made = [ref() for ref in self._made]
        known = len(now) == len(made) and all(
            a is b for a, b in zip(now, made, strict=True)
        )
        return known and all(
            cache.lens == state.lens
            for cache in state.caches
            if isinstance(cache, MLACache)
        )

    def run(self, ids: Tensor, state: DecodeState, taps: Taps | None = None) -> Tensor:
        """Return logits [B T W] and leave the state after ids in the caches."""
        lens, held = state.lens, state.take()
        logits = torch.empty(*ids.shape, self.addresses.sizes.vocab)
        ids = ids.to(torch.int64).contiguous()
        tokens = ids.shape[1]
        pairs = [_carried(cache, tokens) for cache in held]
        array = (decode.Carried * len(pairs))(*(entry for entry, _ in pairs))
        before = (ctypes.c_int64 * len(lens))(*lens)
        run = decode.Run(
            batch=len(lens),
            tokens=tokens,
            threads=torch.get_num_threads(),
            ids=ids.data_ptr(),
            lens=ctypes.addressof(before),
            carried=ctypes.addressof(array),
            logits=logits.data_ptr(),
        )
        if taps is not None:
            self._tap(taps, run)
        decode.step(self.addresses.model, run, self.is_bf16)
        for cache, (_, after) in zip(held, pairs, strict=True):
            _settle(cache, after, tokens)
        self._made = [weakref.ref(x) for cache in held for x in _tensors(cache)]
        return logits

    def _tap(self, taps: Taps, run: decode.Run) -> None:
        """Name what a run is to leave of each layer."""
        z, given = self.addresses.sizes, (run.batch, run.tokens)
        rows = z.layers, run.batch * run.tokens
        dtype = torch.bfloat16 if self.is_bf16 else torch.float32
        sums = torch.empty(z.layers, *given, z.D, dtype=dtype)
        index = torch.empty(*rows, z.active, dtype=torch.int64)
        weights = torch.empty(*rows, z.active)
        run.sums, run.index = sums.data_ptr(), index.data_ptr()
        run.weights = weights.data_ptr()
        for i, layer in enumerate(self.addresses.layers):
            record(taps, f"layers.{i}.out_prefix", sums[i])
            if layer.is_moe:
                record(taps, f"layers.{i}.block_sparse_moe.index", index[i])
                record(taps, f"layers.{i}.block_sparse_moe.weights", weights[i])


class Plans:
    """The plan of one model; a copy of the model makes its own."""

    def __init__(self) -> None:
        self._plan: Plan | None = None

    def __reduce__(self) -> Any:
        return Plans, ()

    def take(self, model: "Model", ids: Tensor, state: DecodeState) -> Plan | None:
        """Return the plan for a step over these, or None where PyTorch must run it."""
        most = min(MAX_TOKENS, state.keep_inputs or MAX_TOKENS)
        if not 0 < ids.shape[0] <= MAX_BATCH or not 0 < ids.shape[1] <= most:
            return None
        if torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
            return None
        if not choose.native(ids.new_empty(0, dtype=torch.float32)):
            return None
        if not all(_usable(cache) for cache in state.caches):
            return None
        if self._plan is None or not self._plan.watched.unchanged():
            self._plan = Plan(model)
        return self._plan if self._plan.fits else None

    def knows(self, state: DecodeState) -> bool:
        """Whether the last native step left these very tensors in the state."""
        return self._plan is not None and self._plan.fits and self._plan.knows(state)


def _tensors(cache: Cache) -> tuple[Tensor, ...]:
    if isinstance(cache, MLACache):
        return (cache.rows,)
    return cache.state, cache.window


def _usable(cache: Cache) -> bool:
    """Whether a cache lies in memory as the kernel reads it."""
    if isinstance(cache, MLACache):
        x = cache.rows
        fits = cache.table is None and x.stride()[1:] == (x.shape[2], 1)
        return fits and type(x) in choose.PLAIN and not x.requires_grad
    both = cache.state, cache.window
    return all(type(x) in choose.PLAIN and not x.requires_grad for x in both)


def _carried(cache: Cache, tokens: int) -> tuple[decode.Carried, Any]:
    """What the kernel is told of a cache, and what is new after it."""
    if isinstance(cache, MLACache):
        had = cache.rows
        cache._reserve(max(cache.lens) + tokens)
        rows = cache.rows
        if rows is not had:
            pages.enlarge([rows])
        return decode.Carried(rows=rows.data_ptr(), stride=rows.stride(0)), None
    before = cache.state.contiguous(), cache.window.contiguous()
    state, window = (torch.empty_like(x) for x in before)
    made = decode.Carried(
        state_in=before[0].data_ptr(),
        state_out=state.data_ptr(),
        window_in=before[1].data_ptr(),
        window_out=window.data_ptr(),
    )
    new = _inputs(cache, tokens) if cache.keep else None
    if new is not None:
        names = ("raw", "k", "v", "g", "beta")
        for name, x in zip(names, new.tensors(), strict=True):
            setattr(made, f"kept_{name}", x.data_ptr())
    return made, (state, window, new, before)


def _inputs(cache: KDACache, T: int) -> "caches.Inputs":
    """Room for the inputs of T tokens."""
    B, H, V, K = cache.state.shape
    return caches.Inputs(
        raw=cache.window.new_empty(B, T, cache.window.shape[2]),
        k=torch.empty(B, T, H, K),
        v=torch.empty(B, T, H, V),
        g=torch.empty(B, T, H, K),
        beta=torch.empty(B, T, H),
    )


def _settle(cache: Cache, after: Any, tokens: int) -> None:
    """Let a cache hold what the kernel has written."""
    if isinstance(cache, MLACache):
        cache.lens = tuple(n + tokens for n in cache.lens)
        return
    state, window, new, _ = after
    if new is None:
        cache.forget()
    else:
        cache._keep(new)
    cache.state, cache.window = state, window
