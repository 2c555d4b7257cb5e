"""A forward pass whose saved tensors are watched, or kept as a plan says."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from k3.model.kda import KDA
from k3.model.mla import MLA
from k3.model.mlp import MLP
from k3.model.moe import MoE
from k3.model.vision import Block
from k3.parallel import eight
from k3.parallel.activation import Place, Plan, Saved, Survey, Unit
from k3.parallel.ranks import Axis

UNITS = (KDA, MLA, MoE, MLP, Block)
REST = "rest"
"""The unit of what lies outside of all units: norms, depth, embedding, head."""


def survey(model: nn.Module, loss: Callable[[], Tensor]) -> Survey:
    """Run loss() once and note what its backward pass would need."""
    watch = _Watch(model)
    with _entered(model, watch), saved_tensors_hooks(watch.pack, _unpack):
        loss()
    return Survey(tuple(watch.saved()), watch.units)


@contextmanager
def applied(model: nn.Module, chosen: Plan) -> Iterator["Meter"]:
    """Keep what one forward pass inside saves as a plan says.

    The backward pass may come after it. What is yielded counts what is held.
    """
    carry = _Carry(model, policies=chosen.policies)
    with ExitStack() as stack:
        stack.enter_context(_entered(model, carry))
        stack.enter_context(_recomputed(model, chosen.recomputed))
        stack.enter_context(saved_tensors_hooks(carry.pack, _unpack))
        yield carry.meter


def agree(chosen: Plan, axis: Axis) -> Plan:
    """Return the plan of an axis' first rank on all of them.

    Units that exchange are run again on every rank or on none, and times differ.
    """
    if axis.group is None:
        return chosen
    told = [chosen]
    dist.broadcast_object_list(told, group=axis.group, group_src=0)
    return told[0]


def units(model: nn.Module) -> dict[str, nn.Module]:
    """Return the units of a model by name."""
    found: dict[str, nn.Module] = {}
    for name, module in model.named_modules():
        inside = any(name.startswith(f"{outer}.") for outer in found)
        if isinstance(module, UNITS) and not inside:
            found[name] = module
    return found


@dataclass(slots=True)
class _Scope:
    """Which unit runs, and how many tensors it has saved."""

    model: nn.Module
    unit: str = field(default=REST, init=False)
    counts: Counter[str] = field(default_factory=Counter, init=False)
    _weights: set[int] = field(default_factory=set, init=False)

    def place(self) -> Place:
        self.counts[self.unit] += 1
        return self.unit, self.counts[self.unit] - 1

    def enter(self, name: str, given: tuple[Any, ...]) -> None:
        self.unit = name

    def leave(self, name: str) -> None:
        self.unit = REST

    def weight(self, x: Tensor) -> bool:
        """Whether x is a parameter or buffer: saving one takes no memory."""
        if not self._weights:
            held = [*self.model.parameters(), *self.model.buffers()]
            self._weights = {_memory(p) for p in held}
        # FSDP gathers parameters into memory of their own: those are leaves.
        whole = x if x._base is None else x._base
        return (whole.is_leaf and whole.requires_grad) or _memory(x) in self._weights


def _memory(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()


def _view(x: Tensor) -> tuple[Any, ...]:
    """What makes two saved tensors of one memory the same numbers in order."""
    layout = x.numel() if x.is_contiguous() else (x.shape, x.stride())
    return x.data_ptr(), layout, x.dtype, x._version


@dataclass(slots=True)
class _Watch(_Scope):
    """Notes what is saved, each piece of memory once."""

    units: dict[str, Unit] = field(default_factory=dict, init=False)
    _found: dict[int, tuple[Tensor, list[Place]]] = field(
        default_factory=dict, init=False
    )
    _views: dict[int, dict[tuple[Any, ...], int]] = field(
        default_factory=dict, init=False
    )
    _began: float = field(default=0.0, init=False)

    def pack(self, x: Tensor) -> Tensor:
        place, x_ = self.place(), x.detach()
        if not self.weight(x):
            self._found.setdefault(_memory(x), (x_, []))[1].append(place)
            self._views.setdefault(_memory(x), {})[place[0], *_view(x)] = x.nbytes
        return x_

    def enter(self, name: str, given: tuple[Any, ...]) -> None:
        self.unit, self._began = name, time.perf_counter()
        size = sum(x.nbytes for x in given if isinstance(x, Tensor))
        self.units[name] = Unit(0.0, size)

    def leave(self, name: str) -> None:
        seconds = time.perf_counter() - self._began
        self.units[name] = Unit(seconds, self.units[name].input_bytes)
        self.unit = REST

    def saved(self) -> Iterator[Saved]:
        for memory, (x, places) in self._found.items():
            size, views = x.untyped_storage().nbytes(), self._views[memory].values()
            yield Saved(tuple(places), size, x.is_floating_point(), sum(views))


@dataclass(slots=True)
class _Carry(_Scope):
    """Keeps what is saved as its place's policy says; the same tensor once a unit."""

    policies: Mapping[Place, str]
    meter: "Meter" = field(default_factory=lambda: Meter(), init=False)
    _open: dict[tuple[Any, ...], tuple[Tensor, Any]] = field(
        default_factory=dict, init=False
    )

    def pack(self, x: Tensor) -> Any:
        policy = self.policies.get(self.place(), "keep")
        if self.weight(x):
            return x.detach()
        if policy == "keep":
            self.meter.add(x)
            return x.detach()
        key = (policy, *_view(x))
        if key not in self._open:
            # With x beside it, so that its memory is not another tensor's meanwhile.
            self._open[key] = x.detach(), _kept(x, policy)
            self.meter.add(self._open[key][1])
        return self._open[key][1], x.shape

    def enter(self, name: str, given: tuple[Any, ...]) -> None:
        self.unit = name
        self._open.clear()

    def leave(self, name: str) -> None:
        self.unit = REST
        self._open.clear()


@contextmanager
def _entered(model: nn.Module, scope: _Scope) -> Iterator[None]:
    """Tell a scope when a unit begins and ends."""
    with ExitStack() as stack:
        for name, module in units(model).items():
            before = partial(_before, scope, name)
            after = partial(_after, scope, name)
            stack.callback(module.register_forward_pre_hook(before).remove)
            stack.callback(module.register_forward_hook(after).remove)
        yield


def _before(scope: _Scope, name: str, module: nn.Module, given: Any) -> None:
    scope.enter(name, given)


def _after(scope: _Scope, name: str, module: nn.Module, given: Any, out: Any) -> None:
    scope.leave(name)


@contextmanager
def _recomputed(model: nn.Module, names: frozenset[str]) -> Iterator[None]:
    """Let these units keep their input alone and run again in the backward pass."""
    changed = {name: m for name, m in units(model).items() if name in names}
    before = {name: vars(m).get("forward") for name, m in changed.items()}
    for module in changed.values():
        again = partial(
            checkpoint, module.forward, use_reentrant=False, preserve_rng_state=False
        )
        vars(module)["forward"] = again
    try:
        yield
    finally:
        for name, module in changed.items():
            del vars(module)["forward"]
            if before[name] is not None:
                vars(module)["forward"] = before[name]


@dataclass(frozen=True, slots=True, eq=False)
class Offloaded:
    """A tensor in host memory; fetched, it is where it was."""

    host: Tensor
    device: torch.device


def _kept(x: Tensor, policy: str) -> Any:
    if policy == "eight" and x.is_floating_point():
        return eight.encode(x)
    if policy == "offload":
        # Pinned, so that the copy runs beside the next layers. A CPU is its own host.
        host = torch.empty(x.shape, dtype=x.dtype, pin_memory=x.is_cuda)
        host.copy_(x.detach(), non_blocking=True)
        return Offloaded(host, x.device)
    return x.detach()


def _unpack(held: Any) -> Tensor:
    if isinstance(held, Tensor):
        return held
    made, shape = held
    if isinstance(made, Offloaded):
        return made.host.to(made.device, non_blocking=True).view(shape)
    return (eight.decode(made) if isinstance(made, eight.Eight) else made).view(shape)


@dataclass(slots=True)
class Meter:
    """Bytes that a pass has left on the device and on the host, each memory once.

    Inputs of recomputed units are counted where something else saves them too.
    """

    device_bytes: int = 0
    host_bytes: int = 0
    _seen: set[int] = field(default_factory=set)

    def add(self, held: Any) -> None:
        """Count what is held for one saved tensor."""
        if isinstance(held, Offloaded):
            self.host_bytes += held.host.nbytes
        elif isinstance(held, eight.Eight):
            self.device_bytes += held.nbytes
        elif _memory(held) not in self._seen:
            self._seen.add(_memory(held))
            self.device_bytes += held.untyped_storage().nbytes()
