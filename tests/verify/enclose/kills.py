"""Modules of a small decoder on their machine inputs, and which mutants leave the ball.

Balls are those of the shipped source. A mutant lives inside one module if it edits what
a module runs, or a module's weights: not the wiring of layers, nor rewinding.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest import mock

import torch
from mutants import checks
from mutants.patch import Edit, Mutant

from k3.kernels import choose, kda
from k3.model import Model
from k3.verify import enclose
from k3.verify.enclose import capture
from k3.verify.enclose.capture import Call

WIRING = ("k3.model.decoder:", ".rewind")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
SCALES = (0.02, 0.3)


def inside_one_module(mutant: Mutant) -> bool:
    """Whether a single module computes something else."""
    if mutant.on == "draft" or "embedding" in mutant.name:
        return False
    edited = mutant.how.where if isinstance(mutant.how, Edit) else ""
    return not any(part in edited for part in WIRING)


INSIDE = [m for m in checks.MUTANTS if inside_one_module(m)]


def model(std: float, dtype: torch.dtype, seed: int = 0, **made: Any) -> Model:
    """Matrices N(0, std), all other weights drawn so that each of them matters."""
    fresh = Model(checks.config(), dtype=torch.float64).init_weights(seed)
    generator = torch.Generator().manual_seed(seed)
    for name, p in fresh.named_parameters():
        with torch.no_grad():
            if "norm" in name.split(".")[-2]:
                p.uniform_(0.8, 1.2, generator=generator)
            elif name.endswith("e_score_correction_bias"):
                p.uniform_(-0.1, 0.1, generator=generator)
            elif name.endswith("dt_bias"):
                p.uniform_(-4.0, 1.0, generator=generator)
            elif p.dim() > 1 and "conv1d" not in name:
                p.normal_(0.0, std, generator=generator)
    return fresh.to(dtype)


@torch.no_grad()
def run(running: Model) -> list[Call]:
    """A prompt of two tiles, a piece of two tokens and a step."""
    ids, made = torch.tensor([checks.IDS]), []
    state = running.init_state(1)
    for part in ids.split(checks.SIZES, 1):
        with capture.calls(running) as calls:
            _, state = running(part, state=state)
        made += calls
    return made


@contextmanager
def small_tiles() -> Iterator[None]:
    """Tiles of four tokens and PyTorch's kernels, as the mutants want them."""
    with mock.patch.object(kda, "TILE", checks.TILE), choose.use("torch"):
        yield


@dataclass
class Scene:
    """A model, the calls of its modules, and the shipped balls of each."""

    running: Model
    calls: list[Call]
    balls: list[Any]
    equations: list[Any]
    """True where enclose knows the module's equation."""


def _kernels() -> Iterator[tuple[Call, Any]]:
    """What the decoder does not reach: two kernels alone, and their equations."""
    for on in ("steep", "passes"):
        it = checks.pair(on)
        given = {n: x.float() for n, x in it.inputs.items()}
        yield (
            Call(on, by_position(it.program, given), tuple(given.values())),
            by_position(it.reference, given),
        )


def by_position(function: Any, names: Any) -> Any:
    """A function of names, called with their values in order."""
    return lambda *values: function(**dict(zip(names, values, strict=True)))


@cache
def scene(std: float, dtype: str, seed: int = 0) -> Scene:
    """The shipped program with its balls."""
    running = model(std, DTYPES[dtype], seed)
    with small_tiles():
        modules, kernels = run(running), list(_kernels())
        calls = [*modules, *(call for call, _ in kernels)]
        balls = [enclosed(c) for c in calls]
    equations = [True] * len(modules) + [e for _, e in kernels]
    return Scene(running, calls, balls, equations)


def enclosed(call: Call) -> Any:
    """The balls of a call, with the machine's own choices."""
    report = enclose.module(call.program, *call.args, equation=False)
    assert report, report.worst
    return report.balls


@contextmanager
def mutated(mutant: Mutant, running: Model) -> Iterator[None]:
    """The shipped source, or the weights, with the mutant in place."""
    with ExitStack() as stack:
        stack.enter_context(small_tiles())
        if isinstance(mutant.how, Edit):
            stack.enter_context(mutant.how.applied())
            stack.enter_context(checks.dispatching(running))
            yield
            return
        before = {n: p.detach().clone() for n, p in running.named_parameters()}
        _write(running, checks.loaded(mutant, before))
        try:
            yield
        finally:
            _write(running, before)


@torch.no_grad()
def _write(running: Model, weights: dict[str, torch.Tensor]) -> None:
    for name, p in running.named_parameters():
        p.copy_(weights[name])


@torch.no_grad()
def made(call: Call) -> dict[str, torch.Tensor]:
    args = capture.copied(list(call.args))
    return capture.results(call.program(*args), args)


def outside(mutant: Mutant, at: Scene) -> str:
    """The first module whose value is outside the shipped ball, "" if none is."""
    with mutated(mutant, at.running):
        for call, balls in zip(at.calls, at.balls, strict=True):
            for name, got in made(call).items():
                fits = got.shape == balls[name].m.shape
                if not fits or got not in balls[name]:
                    return f"{call.name}: {name}"
    return ""


def report(mutant: Mutant, at: Scene) -> Any:
    """What enclose says of the first module that the mutant changes, its own ball."""
    with small_tiles():
        before = [made(call) for call in at.calls]
    with mutated(mutant, at.running):
        for call, right, how in zip(at.calls, before, at.equations, strict=True):
            now = made(call)
            if any(not torch.equal(now[n], right[n]) for n in now):
                return enclose.module(call.program, *call.args, equation=how)
    return None
