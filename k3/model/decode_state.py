"""DecodeState: everything that sequences carry from one token to the next."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsIndex, TypeVar, cast

import torch
from torch import Tensor

from k3 import errors
from k3.model import cache_spec, packed
from k3.model.cache import KDACache, MLACache

Cache = KDACache | MLACache
Made = TypeVar("Made")


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
    kept: tuple[int, ...] = ()
    weight_version: int = 0
    spent: bool = False

    def __post_init__(self) -> None:
        """No tokens are kept unless it is said."""
        self.kept = self.kept or (0,) * len(self.lens)

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

        Should the pass fail half-way, nobody can go on from what it left. A compiled
        pass runs in the mode that made the state: a graph cannot ask for it.
        """
        self.spent = True
        compiling = torch.compiler.is_compiling()
        if not compiling and not torch.is_inference_mode_enabled():
            for cache in self.caches:
                cache.settle()
        return self.caches

    def advance(self, added: tuple[int, ...], packed: bool) -> "DecodeState":
        """Return the handle after a pass that took this one over so many tokens."""
        kept = (0,) * self.batch
        if self.keep_inputs and not packed:
            pairs = zip(self.kept, added, strict=True)
            kept = tuple(min(a + b, self.keep_inputs) for a, b in pairs)
        lens = tuple(a + b for a, b in zip(self.lens, added, strict=True))
        return self._with(self.caches, lens, kept)

    def _with(
        self, caches: list[Cache], lens: tuple[int, ...], kept: tuple[int, ...]
    ) -> "DecodeState":
        return DecodeState(caches, lens, self.keep_inputs, kept, self.weight_version)

    def fork(self) -> "DecodeState":
        """Return an independent copy at the same position."""
        self.check(self.batch, self.weight_version)
        made = self._with([c.fork() for c in self.caches], self.lens, self.kept)
        return self._still(made)

    def __copy__(self) -> "DecodeState":
        """Return a fork: two handles on the same rows would write over each other."""
        return self.fork()

    def __deepcopy__(self, memo: object) -> "DecodeState":
        """Return a fork, which shares only what is never written to."""
        return self.fork()

    @staticmethod
    def join(states: "Sequence[DecodeState]") -> "DecodeState":
        """Return one state with the rows of all in order; the handles are spent.

        Rows may differ in length and in how many inputs they kept.
        Cost: everything they carry is copied once, the sum of their `nbytes`.
        Raises: RequestError for none, a spent or repeated handle, other weights or
        another keep_inputs.
        """
        _check_joinable(states)
        for state in states:
            state.spent = True
        caches = [
            _joined(parts) for parts in zip(*(s.caches for s in states), strict=True)
        ]
        lens = tuple(n for state in states for n in state.lens)
        kept = tuple(n for state in states for n in state.kept)
        return states[0]._with(caches, lens, kept)

    def select(self, rows: Sequence[int]) -> "DecodeState":
        """Return copies of these rows, in any order and as often as they are named.

        The handle stays valid. Cost: what the rows carry is copied once.
        Raises: RequestError for a row that is not there.
        """
        self.check(self.batch, self.weight_version)
        at = [whole(row, "select takes the numbers of rows") for row in rows]
        wrong = [row for row in at if not 0 <= row < self.batch]
        if wrong:
            raise errors.RequestError(
                f"rows must be from 0 to {self.batch - 1}, of {self.batch} sequences: "
                f"got {wrong[0]}"
            )
        lens, kept = (tuple(x[row] for row in at) for x in (self.lens, self.kept))
        made = self._with([c.select(at) for c in self.caches], lens, kept)
        return self._still(made)

    def rewind(self, n: int | Sequence[int]) -> "DecodeState":
        """Return the state as it was n tokens ago, n[b] for row b; this one is spent.

        KDA's memory cannot be run backwards: it is replayed from a base over
        projected inputs, which `init_state(keep_inputs=m)` keeps for the last m
        tokens. A row with n[b] = 0 keeps every bit.
        Raises: RequestError when n of them were not kept.
        """
        self.check(self.batch, self.weight_version)
        back = self._back(n)
        for count, most in zip(back, self.kept, strict=True):
            if not 0 <= count <= most:
                raise errors.RequestError(
                    f"rewind takes back at most the {most} tokens whose inputs were "
                    f"kept: got {count}; call init_state(batch, keep_inputs=...) with "
                    "more"
                )
        self.spent = True
        if any(back):
            for cache in self.caches:
                cache.rewind(back)
        lens, kept = (
            tuple(a - b for a, b in zip(x, back, strict=True))
            for x in (self.lens, self.kept)
        )
        return self._with(self.caches, lens, kept)

    def keeping(self, inputs: int) -> "DecodeState":
        """Return the state that keeps the inputs of so many tokens to come.

        Those so far are verified: it does not go back behind them. This one is spent.
        """
        inputs = whole(inputs, "keep_inputs is a whole number of tokens")
        self.check(self.batch, self.weight_version)
        for cache in self.take():
            if isinstance(cache, KDACache):
                cache.keeping(inputs)
        none = (0,) * self.batch
        return DecodeState(self.caches, self.lens, inputs, none, self.weight_version)

    def _still(self, made: Made) -> Made:
        """Return a copy; refuse one that a pass in another thread has written into."""
        self.check(self.batch, self.weight_version)
        return made

    def _back(self, n: int | Sequence[int]) -> tuple[int, ...]:
        """Return how far each row goes back."""
        rule = "rewind takes back a whole number of tokens"
        if not isinstance(n, Sequence) or isinstance(n, str | bytes):
            return (whole(n, rule),) * self.batch
        if len(n) != self.batch:
            raise errors.ShapeError(
                f"rewind takes one number, or one for each of {self.batch} sequences: "
                f"got {len(n)}"
            )
        return tuple(whole(count, rule) for count in n)

    def pack(self) -> dict[str, Tensor]:
        """Return the state as fixed tensors, cloned, for storage or transport."""
        self.check(self.batch, self.weight_version)
        head = [self.keep_inputs, self.weight_version, *self.lens, *self.kept]
        named = {"header": torch.tensor(head)}
        for i, cache in enumerate(self.caches):
            layer = cache.tensors().items()
            named |= {f"layers.{i}.{name}": x.detach().clone() for name, x in layer}
        return self._still(named)

    @staticmethod
    def unpack(tensors: dict[str, Tensor]) -> "DecodeState":
        """Return the state that `pack` wrote; raise ShapeError for anything else.

        A forward pass then compares every shape, dtype and device with its model's.
        """
        keep, version, lens, kept = packed.header(tensors)
        layers = packed.by_layer(tensors)
        for named in layers:
            packed.check_sizes(named, lens, kept)
        caches = [packed.cache(named, keep, lens, kept) for named in layers]
        return DecodeState(caches, lens, keep, kept, version)


def _check_joinable(states: Sequence[DecodeState]) -> None:
    """Refuse what is not a list of live states of the same weights and options."""
    if not states:
        raise errors.RequestError(
            "join needs at least one state: got none; call init_state for no sequences"
        )
    first = states[0]
    for state in states:
        state.check(state.batch, first.weight_version)
        state.check_layers(len(first.caches))
        if state.keep_inputs != first.keep_inputs:
            raise errors.RequestError(
                "states that are joined keep the same number of inputs: got "
                f"keep_inputs {first.keep_inputs} and {state.keep_inputs}; make them "
                "with the same init_state(keep_inputs=...)"
            )
    if len({id(state) for state in states}) < len(states):
        raise errors.RequestError(
            "a state is spent once it is joined: got one twice; select() repeats rows"
        )


def _joined(parts: tuple[Cache, ...]) -> Cache:
    """Return one layer of several states as one."""
    if isinstance(parts[0], MLACache):
        return MLACache.join(cast("tuple[MLACache, ...]", parts))
    return KDACache.join(cast("tuple[KDACache, ...]", parts))


def whole(n: object, rule: str) -> int:
    """Return a count as an int; raise ShapeError for what is none, True included."""
    try:
        if isinstance(n, SupportsIndex) and not isinstance(n, bool):
            return operator.index(n)
    except TypeError:
        pass
    raise errors.ShapeError(f"{rule}: got {n!r}; give an int")
