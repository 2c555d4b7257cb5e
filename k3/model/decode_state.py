"""DecodeState: everything that sequences carry from one token to the next."""

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

    def advance(self, added: tuple[int, ...], packed: bool) -> "DecodeState":
        """Return the handle after a pass over so many tokens; this one is spent."""
        self.spent = True
        kept = 0 if packed else min(self.kept + added[0], self.keep_inputs)
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
        if "header" not in packed or packed["header"].numel() < 3:
            raise errors.ShapeError(
                f"a packed state has a header: got {sorted(packed)[:4]}; pass the "
                "dict that DecodeState.pack returned"
            )
        keep, kept, version, *lens = (int(x) for x in packed["header"])
        layers: dict[int, dict[str, Tensor]] = {}
        for key, x in packed.items():
            if key != "header":
                _, i, name = key.split(".")
                layers.setdefault(int(i), {})[name] = x.clone()
        caches = [_cache(layers[i], keep, tuple(lens)) for i in sorted(layers)]
        return DecodeState(caches, tuple(lens), keep, kept, version)


def _cache(named: dict[str, Tensor], keep: int, lens: tuple[int, ...]) -> Cache:
    if "rows" in named:
        return MLACache(rows=named["rows"], lens=lens)
    cache = KDACache(state=named["state"], window=named["window"], keep=keep)
    if "kept_raw" in named:
        cache.base = named["base_state"], named["base_window"]
        names = ("raw", "k", "v", "g", "beta")
        cache.kept = Inputs(*(named[f"kept_{n}"] for n in names))
    return cache
