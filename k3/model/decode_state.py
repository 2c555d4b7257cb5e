"""DecodeState: everything that sequences carry from one token to the next."""

import re
from dataclasses import dataclass

import torch
from torch import Tensor

from k3 import errors
from k3.model.cache import Inputs, KDACache, MLACache

Cache = KDACache | MLACache


@dataclass(slots=True)
class DecodeState:
    """The caches of all layers for a batch of sequences, at one position each.

    A value: a forward pass takes a handle and returns the next one; the old one
    is spent, and using it again is an error. `fork()` makes an independent copy.
    """

    caches: list[Cache]
    lens: tuple[int, ...]
    keep_inputs: int = 0
    kept: int = 0
    weight_version: int = 0
    spent: bool = False

    @property
    def batch(self) -> int:
        """Number of sequences."""
        return len(self.lens)

    @property
    def lengths(self) -> Tensor:
        """Tokens behind each sequence: int64 [B]."""
        return torch.tensor(self.lens)

    @property
    def nbytes(self) -> int:
        """Bytes of what is carried, without spare capacity."""
        tensors = [x for cache in self.caches for x in cache.tensors().values()]
        return sum(x.numel() * x.element_size() for x in tensors)

    def check(self, batch: int, weight_version: int) -> None:
        """Refuse a spent handle, another batch size, or other weights."""
        if self.spent:
            raise errors.RequestError(
                "a DecodeState is spent once a forward pass has taken it: got one "
                "that was used before; keep the state that the pass returned, or "
                "fork() before it"
            )
        if batch != self.batch:
            raise errors.ShapeError(
                f"the state holds {self.batch} sequences: got ids for {batch}; "
                "call init_state with that batch"
            )
        if weight_version != self.weight_version:
            raise errors.RequestError(
                "a state belongs to the weights that made it: it has weight version "
                f"{self.weight_version}, the model {weight_version}; run the tokens "
                "again from init_state"
            )

    def check_layers(self, num_layers: int) -> None:
        """Refuse the state of a model of another depth."""
        if len(self.caches) != num_layers:
            raise errors.ShapeError(
                f"the state holds {len(self.caches)} layers: got a model of "
                f"{num_layers}; call that model's init_state"
            )

    def take(self) -> list[Cache]:
        """Hand the caches to a pass that changes them; this handle is spent.

        Should the pass fail half-way, nobody can go on from what it left.
        """
        self.spent = True
        if not torch.is_inference_mode_enabled():
            for cache in self.caches:
                cache.settle()
        return self.caches

    def advance(self, added: tuple[int, ...], packed: bool) -> "DecodeState":
        """Return the handle after a pass that took this one over so many tokens."""
        new = 0 if packed else max(added, default=0)
        kept = 0 if packed else min(self.kept + new, self.keep_inputs)
        lens = tuple(a + b for a, b in zip(self.lens, added, strict=True))
        return self._with(self.caches, lens, kept)

    def _with(
        self, caches: list[Cache], lens: tuple[int, ...], kept: int
    ) -> "DecodeState":
        return DecodeState(caches, lens, self.keep_inputs, kept, self.weight_version)

    def fork(self) -> "DecodeState":
        """Return an independent copy at the same position."""
        self.check(self.batch, self.weight_version)
        return self._with([c.fork() for c in self.caches], self.lens, self.kept)

    def rewind(self, n: int) -> "DecodeState":
        """Return the state as it was n tokens ago; this handle is spent.

        KDA's memory cannot be run backwards: it is replayed from a base over
        projected inputs, which `init_state(keep_inputs=m)` keeps for the last m
        tokens. Raises: RequestError when n of them were not kept.
        """
        self.check(self.batch, self.weight_version)
        if not 0 <= n <= self.kept:
            raise errors.RequestError(
                f"rewind takes back at most the {self.kept} tokens whose inputs were "
                f"kept: got {n}; call init_state(batch, keep_inputs=...) with more"
            )
        self.spent = True
        if n:
            for cache in self.caches:
                cache.rewind(n)
        lens = tuple(length - n for length in self.lens)
        return self._with(self.caches, lens, self.kept - n)

    def pack(self) -> dict[str, Tensor]:
        """Return the state as fixed tensors, cloned, for storage or transport."""
        self.check(self.batch, self.weight_version)
        head = [self.keep_inputs, self.kept, self.weight_version, *self.lens]
        packed = {"header": torch.tensor(head)}
        for i, cache in enumerate(self.caches):
            named = cache.tensors().items()
            packed |= {f"layers.{i}.{name}": x.detach().clone() for name, x in named}
        return packed

    @staticmethod
    def unpack(packed: dict[str, Tensor]) -> "DecodeState":
        """Return the state that `pack` wrote; raise ShapeError for anything else."""
        keep, kept, version, *lens = _header(packed)
        layers = _by_layer(packed)
        for named in layers:
            _check_sizes(named, tuple(lens), kept)
        caches = [_cache(named, keep, tuple(lens)) for named in layers]
        return DecodeState(caches, tuple(lens), keep, kept, version)


_KEPT = ("raw", "k", "v", "g", "beta")
_MLA = {"rows"}
_KDA = {"state", "window"}
_REWINDABLE = _KDA | {"base_state", "base_window", *(f"kept_{n}" for n in _KEPT)}


def _refuse(rule: str, got: object) -> errors.ShapeError:
    return errors.ShapeError(
        f"a packed state {rule}: got {got}; pass the dict that DecodeState.pack "
        "returned"
    )


def _header(packed: dict[str, Tensor]) -> list[int]:
    header = packed.get("header")
    if header is None or header.is_floating_point() or header.numel() < 3:
        raise _refuse("has a header of at least 3 integers", sorted(packed)[:4])
    return [int(x) for x in header.flatten()]


def _by_layer(packed: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    """Return the tensors of each layer, cloned."""
    layers: dict[int, dict[str, Tensor]] = {}
    for key, x in packed.items():
        if key == "header":
            continue
        found = re.fullmatch(r"layers\.(\d+)\.(\w+)", key)
        if found is None:
            raise _refuse("has tensors named layers.N.NAME", key)
        layers.setdefault(int(found[1]), {})[found[2]] = x.clone()
    if sorted(layers) != list(range(len(layers))):
        raise _refuse("has every layer from 0 on", sorted(layers))
    for i, named in layers.items():
        if set(named) not in (_MLA, _KDA, _REWINDABLE):
            raise _refuse("has all tensors of a layer", f"layer {i}: {sorted(named)}")
    return [layers[i] for i in sorted(layers)]


def _check_sizes(named: dict[str, Tensor], lens: tuple[int, ...], kept: int) -> None:
    """Refuse tensors of another batch, context or number of kept tokens."""
    tokens = {name: kept for name in named if name.startswith("kept_")}
    if "rows" in named:
        tokens["rows"] = max(lens, default=0)
    for name, x in named.items():
        n = tokens.get(name, x.shape[1])
        if x.shape[:2] != (len(lens), n):
            raise _refuse(f"has {name} of sizes {(len(lens), n)}", tuple(x.shape[:2]))


def _cache(named: dict[str, Tensor], keep: int, lens: tuple[int, ...]) -> Cache:
    if "rows" in named:
        return MLACache(rows=named["rows"], lens=lens)
    cache = KDACache(state=named["state"], window=named["window"], keep=keep)
    if "kept_raw" in named:
        cache.base = named["base_state"], named["base_window"]
        cache.kept = Inputs(*(named[f"kept_{n}"] for n in _KEPT))
    return cache
