"""How a DecodeState lies in pages: rows by MLA layer, memories by KDA group (§5.4.1).

A page holds the rows of one MLA layer for one physical block. A KDA group, one layer
of every run of KDA layers, lies behind itself over as many pages as its bytes need.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from k3.config import K3Config
from k3.errors import RequestError
from k3.model import DecodeState, Model
from k3.model.cache import KDACache, MLACache
from k3.serve.pages import Memory

MIN_TOKENS, MAX_TOKENS = 16, 6144


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheOptions:
    """Sizes of the prefix cache. `chunk_tokens` is what one prefill pass takes."""

    hash_tokens: int = 512
    block_tokens: int = 1024
    chunk_tokens: int = 1024
    memory_bytes: int = 2**28
    groups: int = 3

    def __post_init__(self) -> None:
        if not MIN_TOKENS <= self.hash_tokens <= self.block_tokens <= MAX_TOKENS:
            raise RequestError(
                f"{MIN_TOKENS} <= hash_tokens <= block_tokens <= {MAX_TOKENS} must "
                f"hold: got {self.hash_tokens} and {self.block_tokens}"
            )
        for name in ("block_tokens", "chunk_tokens"):
            value = getattr(self, name)
            if value < 1 or value % self.hash_tokens:
                raise RequestError(
                    f"{name} must be a multiple of hash_tokens {self.hash_tokens}: "
                    f"got {value}; round it"
                )
        if self.hash_tokens % 8 or self.groups < 1:
            raise RequestError(
                f"hash_tokens must be a multiple of 8 and groups at least 1: got "
                f"{self.hash_tokens} and {self.groups}"
            )


def mla_layers(config: K3Config) -> list[int]:
    """Layers with rows, from 0."""
    layers = range(config.text.num_hidden_layers)
    return [i for i in layers if config.text.is_mla(i)]


def kda_groups(config: K3Config, groups: int) -> tuple[list[int], ...]:
    """KDA layers dealt out in turn to at most `groups` groups."""
    layers = range(config.text.num_hidden_layers)
    kda = [i for i in layers if not config.text.is_mla(i)]
    return tuple(kda[g::groups] for g in range(min(groups, len(kda))))


def page_bytes(config: K3Config, block_tokens: int, itemsize: int) -> int:
    """Rows of one MLA layer for one physical block."""
    return block_tokens * config.text.mla_row_scalars * itemsize


class Layout:
    """Sizes in pages for one model, and the copies between a state and the pages."""

    def __init__(self, model: Model, options: CacheOptions) -> None:
        self.options, itemsize = options, model.dtype.itemsize
        self.page_bytes = page_bytes(model.config, options.block_tokens, itemsize)
        self.mla = mla_layers(model.config)
        self.groups = kda_groups(model.config, options.groups)
        self.like, self.device = model.init_state(1), model.device
        self.group_bytes = tuple(
            sum(x.numel() * x.element_size() for x in self.tensors(self.like, group))
            for group in range(len(self.groups))
        )
        self.group_pages = tuple(
            math.ceil(size / self.page_bytes) for size in self.group_bytes
        )
        self.row_dtype, self.row_width = model.dtype, model.config.text.mla_row_scalars
        self.num_pages = options.memory_bytes // self.page_bytes
        least = len(self.mla) + sum(self.group_pages)
        if self.num_pages < least:
            raise RequestError(
                f"memory_bytes must hold one block and one checkpoint, {least} pages "
                f"of {self.page_bytes} bytes = {least * self.page_bytes}: got "
                f"{options.memory_bytes}; raise it or lower block_tokens"
            )

    def write_rows(
        self, memory: Memory, pages: Sequence[int], state: DecodeState, span: range
    ) -> None:
        """Copy the rows of some tokens of one sequence into one block's pages."""
        first = span.start // self.options.block_tokens * self.options.block_tokens
        rows = memory.rows(self.row_dtype, self.row_width)
        for page, new in zip(pages, self.rows_of(state, span), strict=True):
            rows[page, span.start - first : span.stop - first] = new

    def read_rows(
        self, memory: Memory, blocks: Sequence[tuple[int, ...]], tokens: int
    ) -> list[Tensor]:
        """Return copies of the first tokens' rows, [1 tokens row], by MLA layer."""
        rows = memory.rows(self.row_dtype, self.row_width)
        tables = [[pages[i] for pages in blocks] for i in range(len(self.mla))]
        return [rows[table].flatten(0, 1)[None, :tokens] for table in tables]

    def write_group(
        self, memory: Memory, pages: tuple[int, ...], state: DecodeState, group: int
    ) -> None:
        """Copy one KDA group's memories and windows into its pages."""
        memory.write(pages, self.tensors(state, group))

    def read_group(
        self, memory: Memory, pages: tuple[int, ...], group: int
    ) -> list[Tensor]:
        """Return copies of a group's memories, then of its windows."""
        return self.split(memory.read(pages), group)

    def split(self, flat: Tensor, group: int) -> list[Tensor]:
        """Cut a group's bytes into its memories and its windows."""
        made = []
        for like in self.tensors(self.like, group):
            size = like.numel() * like.element_size()
            part = flat[:size].to(like.device)
            made.append(part.view(like.dtype).view(like.shape))
            flat = flat[size:]
        return made

    def rows_of(self, state: DecodeState, span: range) -> list[Tensor]:
        """Return the rows of some tokens of one sequence, by MLA layer."""
        return [_mla(state, i).of(0)[span.start : span.stop] for i in self.mla]

    def build(
        self, state: DecodeState, rows: list[Tensor], groups: list[list[Tensor]]
    ) -> DecodeState:
        """Fill a fresh state of one sequence with what was read."""
        tokens = rows[0].shape[1]
        for layer, row in zip(self.mla, rows, strict=True):
            cache = _mla(state, layer)
            cache.rows, cache.lens = row, (tokens,)
        for layers, tensors in zip(self.groups, groups, strict=True):
            halves = zip(tensors[: len(layers)], tensors[len(layers) :], strict=True)
            for layer, (memory, window) in zip(layers, halves, strict=True):
                _kda(state, layer).state = memory
                _kda(state, layer).window = window
        state.lens = (tokens,)
        return state

    def tensors(self, state: DecodeState, group: int) -> list[Tensor]:
        """Return a group's memories, then its windows."""
        caches = [_kda(state, layer) for layer in self.groups[group]]
        return [c.state for c in caches] + [c.window for c in caches]


def sequence(state: DecodeState, row: int) -> DecodeState:
    """Return one sequence of a batch as a state of its own, sharing its tensors."""
    if not 0 <= row < state.batch:
        raise RequestError(
            f"row must be one of the state's {state.batch} sequences: got {row}"
        )
    if state.batch == 1:
        return state
    caches: list[KDACache | MLACache] = []
    for cache in state.caches:
        if isinstance(cache, MLACache):
            n = cache.lens[row]
            caches.append(MLACache(rows=cache.of(row)[None], lens=(n,)))
        else:
            caches.append(cache.view(row))
    keep, kept = state.keep_inputs, (state.kept[row],)
    return DecodeState(caches, (state.lens[row],), keep, kept, state.weight_version)


def _mla(state: DecodeState, layer: int) -> MLACache:
    return cast("MLACache", state.caches[layer])


def _kda(state: DecodeState, layer: int) -> KDACache:
    return cast("KDACache", state.caches[layer])


def dtype_name(dtype: torch.dtype) -> str:
    """Return a dtype's name, part of what a stored row means."""
    return str(dtype).removeprefix("torch.")
