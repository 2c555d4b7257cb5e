"""DecodeState: everything that sequences carry from one token to the next."""

import operator
from dataclasses import dataclass
from typing import SupportsIndex

import torch
from torch import Tensor

from k3 import errors
from k3.model import cache_spec, packed
from k3.model.cache import KDACache, MLACache

Cache = KDACache | MLACache


@dataclass(slots=True)
class DecodeState:
    """The caches of all layers for a batch of sequences, at one position each.

    A value: a forward pass takes a handle and returns the next one; the old one
    is spent, and using it again is an error. `fork()`, like copy.copy and
    copy.deepcopy, makes an independent copy.
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

    def check_caches(self, specs: list[cache_spec.Spec], device: torch.device) -> None:
        """Refuse tensors that are not the model's in shape, dtype or device."""
        self.check_layers(len(specs))
        at = self.lens, self.keep_inputs, self.kept
        cache_spec.check(self.caches, specs, device, at)

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

    def __copy__(self) -> "DecodeState":
        """Return a fork: two handles on the same rows would write over each other."""
        return self.fork()

    def __deepcopy__(self, memo: object) -> "DecodeState":
        """Return a fork, which shares only what is never written to."""
        return self.fork()

    def rewind(self, n: int) -> "DecodeState":
        """Return the state as it was n tokens ago; this handle is spent.

        KDA's memory cannot be run backwards: it is replayed from a base over
        projected inputs, which `init_state(keep_inputs=m)` keeps for the last m
        tokens. Raises: RequestError when n of them were not kept.
        """
        self.check(self.batch, self.weight_version)
        n = whole(n, "rewind takes back a whole number of tokens")
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
        named = {"header": torch.tensor(head)}
        for i, cache in enumerate(self.caches):
            layer = cache.tensors().items()
            named |= {f"layers.{i}.{name}": x.detach().clone() for name, x in layer}
        return named

    @staticmethod
    def unpack(tensors: dict[str, Tensor]) -> "DecodeState":
        """Return the state that `pack` wrote; raise ShapeError for anything else.

        A forward pass then compares every shape, dtype and device with its model's.
        """
        keep, kept, version, *lens = packed.header(tensors)
        layers = packed.by_layer(tensors)
        for named in layers:
            packed.check_sizes(named, tuple(lens), kept)
        caches = [packed.cache(named, keep, tuple(lens)) for named in layers]
        return DecodeState(caches, tuple(lens), keep, kept, version)


def whole(n: object, rule: str) -> int:
    """Return a count as an int; raise ShapeError for what is none, True included."""
    try:
        if isinstance(n, SupportsIndex) and not isinstance(n, bool):
            return operator.index(n)
    except TypeError:
        pass
    raise errors.ShapeError(f"{rule}: got {n!r}; give an int")
