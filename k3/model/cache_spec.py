"""What the tensors of a state must be: full shapes, dtypes, device, all or nothing.

A tensor of another shape can broadcast, and one of another dtype can be rounded on
the way; both would be a silent other answer.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from k3 import errors
from k3.kernels import segments
from k3.model.cache import KDACache, MLACache

Sizes = tuple[int, ...]
At = tuple[tuple[int, ...], int, tuple[int, ...]]
"""Lengths of the sequences, keep_inputs, and how many inputs each has kept."""


@dataclass(frozen=True, slots=True)
class KDASpec:
    """One KDA layer: axes of its memory and window, and their dtypes."""

    heads: int
    V: int
    K: int
    past: int
    wide: torch.dtype
    trunk: torch.dtype

    @property
    def channels(self) -> int:
        """Channels of the convolution window: keys of q and k, values of v."""
        return self.heads * (2 * self.K + self.V)

    def state(self, sequences: int) -> Sizes:
        """Sizes of the memory."""
        return sequences, self.heads, self.V, self.K

    def window(self, sequences: int) -> Sizes:
        """Sizes of the convolution window."""
        return sequences, self.past, self.channels

    def wanted(self, batch: int, kept: int) -> dict[str, tuple[Sizes, torch.dtype]]:
        """Sizes and dtype of every tensor by name."""
        state, window = self.state(batch), self.window(batch)
        keys, each = (self.heads, self.K), (batch, kept)
        return {
            "state": (state, self.wide),
            "window": (window, self.trunk),
            "base_state": (state, self.wide),
            "base_window": (window, self.trunk),
            "kept_raw": ((*each, self.channels), self.trunk),
            "kept_k": ((*each, *keys), self.wide),
            "kept_v": ((*each, self.heads, self.V), self.wide),
            "kept_g": ((*each, *keys), self.wide),
            "kept_beta": ((*each, self.heads), self.wide),
        }


@dataclass(frozen=True, slots=True)
class MLASpec:
    """One MLA layer: the width of a row and its dtype."""

    width: int
    trunk: torch.dtype


Spec = KDASpec | MLASpec


def check(
    caches: list[KDACache | MLACache],
    specs: list[Spec],
    device: torch.device,
    at: At,
) -> None:
    """Refuse caches that are not those of a model at (lens, keep_inputs, kept).

    Raises: ShapeError naming the layer and the tensor.
    """
    for i, (cache, spec) in enumerate(zip(caches, specs, strict=True)):
        wrong = next(_wrong(cache, spec, device, at), None)
        if wrong:
            raise errors.ShapeError(
                f"a state must be as the model's init_state makes it: layer {i} needs "
                f"{wrong}; use the state of this model, in its dtype, on its device"
            )


def _wrong(
    cache: KDACache | MLACache,
    spec: Spec,
    device: torch.device,
    at: At,
) -> Iterator[str]:
    """Yield what a cache needs and what came instead."""
    if isinstance(cache, MLACache) and isinstance(spec, MLASpec):
        yield from _wrong_rows(cache, spec, device, at[0])
    elif isinstance(cache, KDACache) and isinstance(spec, KDASpec):
        yield from _wrong_memory(cache, spec, device, at)
    else:
        kind = "a KDA memory" if isinstance(spec, KDASpec) else "MLA rows"
        yield f"{kind}: got {type(cache).__name__}"


def _wrong_rows(
    cache: MLACache, spec: MLASpec, device: torch.device, lens: tuple[int, ...]
) -> Iterator[str]:
    if not segments.same(cache.lens, lens):
        yield f"rows of {lens} tokens: got {cache.lens}"
    shape = tuple(cache.rows.shape)
    if cache.table is None:
        fits = shape[:1] == (len(lens),) and len(shape) == 3
        longest = max((0, *lens))
        if not fits or shape[1] < longest or shape[2] != spec.width:
            wanted = (len(lens), longest, spec.width)
            yield f"rows of sizes {wanted}: got {shape}"
    elif shape[2:] != (spec.width,) or cache.table.shape[:1] != (len(lens),):
        yield f"pages of rows of {spec.width} for {len(lens)} sequences: got {shape}"
    yield from _kind("rows", cache.rows, spec.trunk, device)


def _wrong_memory(
    cache: KDACache,
    spec: KDASpec,
    device: torch.device,
    at: At,
) -> Iterator[str]:
    lens, keep, kept = at
    named = cache.tensors()
    most = max((0, *kept))
    wanted = spec.wanted(len(lens), most)
    if cache.keep != keep:
        yield f"keep_inputs {keep}: got {cache.keep}"
    if most and "kept_raw" not in named:
        yield f"the inputs of the {most} last tokens: got none"
    elif "kept_raw" in named and cache.counts != kept:
        yield f"the inputs of the {kept} last tokens: got {cache.counts}"
    for name, x in named.items():
        shape, dtype = wanted[name]
        if x.shape != shape:
            yield f"{name} of sizes {shape}: got {tuple(x.shape)}"
        yield from _kind(name, x, dtype, device)


def _kind(
    name: str, x: Tensor, dtype: torch.dtype, device: torch.device
) -> Iterator[str]:
    if x.dtype != dtype or x.device != device:
        yield f"{name} in {dtype} on {device}: got {x.dtype} on {x.device}"
