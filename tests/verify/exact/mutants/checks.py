"""What each mutant is held against: one small decoder, and three single kernels."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest import mock

import small
import torch
from mutants import of_channel, of_kda, of_load, of_mla
from mutants.patch import Edit, Mutant

from k3.kernels import kda, moe
from k3.model import Model
from k3.model.moe import MoE
from k3.verify.exact import Report, cut, equal, run
from k3.verify.exact.equal import differ, with_weights
from k3.verify.exact.mode import ExactMode
from k3.verify.exact.number import Reference
from k3.verify.exact.pairs import Pair, decoder
from k3.verify.exact.pairs import kda as kda_pairs
from k3.verify.exact.pairs import mla as mla_pairs
from k3.verify.exact.tower import Tower

MUTANTS: list[Mutant] = [
    *of_kda.MUTANTS,
    *of_mla.MUTANTS,
    *of_channel.MUTANTS,
    *of_load.MUTANTS,
]
IDS = [3, 14, 15, 9, 26, 5, 35, 8]
SIZES = [5, 2, 1]
"""A prefill of two tiles, a piece of two tokens and a step."""
TILE = 4
TEXT: dict[str, Any] = {
    "num_hidden_layers": 4,
    "hidden_size": 7,
    "intermediate_size": 6,
    "moe_intermediate_size": 3,
    "routed_expert_hidden_size": 4,
    "num_experts": 5,
    "num_experts_per_token": 3,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "q_lora_rank": 5,
    "kv_lora_rank": 5,
    "qk_nope_head_dim": 3,
    "qk_rope_head_dim": 2,
    "v_head_dim": 4,
    "routed_scaling_factor": 2.5,
}
LINEAR = {
    "num_heads": 2,
    "head_dim": 4,
    "value_head_dim": 4,
    "kda_layers": [1, 2, 3],
    "full_attn_layers": [4],
}


def config():
    """Four layers, K = V so that a transposed state fits, three kinds of layer."""
    return small.config(linear=LINEAR, **TEXT)


@cache
def model() -> Model:
    """The model whose weights are the shadows."""
    return small.model(torch.float32, config())


@cache
def pair(on: str) -> Pair:
    """The check of that name."""
    if on == "steep":
        return kda_pairs.memory("chunk", (6,), K=3, V=2, floor=-60.0)
    if on == "passes":
        return mla_pairs.expanded(2, 5, workspace=2)
    if on == "draft":
        return decoder.speculative(model(), IDS[:3], IDS[3:5], IDS[5:6])
    return decoder.chunked(model(), IDS, SIZES)


def loaded(mutant: Mutant, weights: dict[str, Any]) -> dict[str, Any]:
    """Weights as a mutant of loading gives them."""
    return weights if isinstance(mutant.how, Edit) else mutant.how.change(weights)


@cache
def wanted(on: str, bits: int, seed: int) -> Any:
    """What the reference gives: it is the same for all mutants."""
    it, run_ = pair(on), Reference(Tower(bits, 3, seed), "hash")
    inputs = with_weights(it.program, it.inputs)
    return run.reference(it.reference, inputs, run_, it.cut_points is not None)


@contextmanager
def mutated(mutant: Mutant) -> Iterator[Any]:
    """The mutated program of its check, with tiles small enough to have two."""
    it = pair(mutant.on)
    with ExitStack() as stack:
        if mutant.on != "steep":
            stack.enter_context(mock.patch.object(kda, "TILE", TILE))
        if isinstance(mutant.how, Edit):
            stack.enter_context(mutant.how.applied())
            stack.enter_context(dispatching(model()))
            yield it.program
        else:
            yield _Loaded(it.program, mutant)


@contextmanager
def dispatching(running: Model) -> Iterator[None]:
    """A layer holds the dispatch that it was built with: give it the current one."""
    layers = [m for m in running.modules() if isinstance(m, MoE)]
    before = [m.dispatch for m in layers]
    for m in layers:
        m.dispatch = moe.combine
    yield
    for m, dispatch in zip(layers, before, strict=True):
        m.dispatch = dispatch


def kill(mutant: Mutant, bits: int = 50, seed: int = 0) -> str:
    """The first cut point or output in which a mutant differs, "" if none does."""
    it, right = pair(mutant.on), wanted(mutant.on, bits, seed)
    tower = Tower(bits, 3, seed)
    inputs = with_weights(it.program, it.inputs)
    with mutated(mutant) as program:
        try:
            mode, cuts = ExactMode(tower, "hash"), cut.Watch(right.cuts)
            ran = run.program(program, inputs, mode, it.cut_points, cuts=cuts)
        except cut.Parted as parted:
            return parted.name
    for name, value in ran.outputs.items():
        pairs = run.values(value, tower), run.values(right.outputs[name], tower)
        if differ(name, *pairs):
            return name
    return ""


def report(mutant: Mutant, **options: Any) -> Report:
    """The report that a user would see, with the line of the fault."""
    it = pair(mutant.on)
    given = {"order": "hash", "covering": False, "seeds": 1} | options
    with mutated(mutant) as program:
        return equal(
            program, it.reference, it.inputs, cut_points=it.cut_points, **given
        )


class _Loaded(torch.nn.Module):
    """A program that gets its weights from a mutant of loading."""

    def __init__(self, program: torch.nn.Module, mutant: Mutant) -> None:
        super().__init__()
        self.model, self.inner, self.mutant = program.model, [program], mutant

    def forward(self) -> Any:
        weights = loaded(self.mutant, dict(self.model.named_parameters()))
        named = {f"model.{name}": w for name, w in weights.items()}
        return torch.func.functional_call(self.inner[0], named, ())
