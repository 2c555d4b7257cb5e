"""Where program and reference part: the first operation that nothing explains.

Residues identify values, so a value of the program that also occurs anywhere in the
reference is explained. The place is the first operation, among those that the wrong
value came from, whose operands are explained while neither its result nor anything made
from it is.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from k3.verify.exact import nested, run
from k3.verify.exact.mode import ExactMode
from k3.verify.exact.number import Reference
from k3.verify.exact.report import Place
from k3.verify.exact.tensor import ExactTensor
from k3.verify.exact.tower import Tower

OWN = str(Path(__file__).parent)
TORCH = str(Path(torch.__file__).parent)


@dataclass(slots=True)
class Step:
    """One operation: where it was called, what it took, whether it is explained."""

    place: Place
    inputs: tuple[int, ...]
    known: bool
    constant: bool = False
    later: bool = False


@dataclass(slots=True)
class Trace:
    """The operations of a run, and which one made each tensor."""

    seen: Any
    steps: list[Step] = field(default_factory=list)
    maker: dict[int, int] = field(default_factory=dict)
    alive: list[Any] = field(default_factory=list)

    def __call__(self, func: Any, args: Any, out: Any) -> None:
        """Record one operation."""
        made = [x for x in nested.leaves(out) if isinstance(x, ExactTensor)]
        if not made:
            return
        taken = [x for x in nested.leaves(args) if isinstance(x, ExactTensor)]
        constant = all(x.cell.constant for x in made)
        inputs = {self.maker[id(x)] for x in taken if id(x) in self.maker}
        known = constant or all(self.known(x) for x in made)
        step = Step(_caller(func), tuple(sorted(inputs)), known, constant)
        self.steps.append(step)
        self.alive += made
        for x in made:
            self.maker[id(x)] = len(self.steps) - 1

    def known(self, x: ExactTensor) -> bool:
        """Whether the reference made every entry, up to sign."""
        v = x.c[0].reshape(-1).numpy()
        at = np.searchsorted(self.seen, v).clip(0, self.seen.size - 1)
        return bool((self.seen[at] == v).all())

    def ancestors(self, last: int) -> set[int]:
        """The operations that a result came from, itself included."""
        found, open_ = set(), [last]
        while open_:
            i = open_.pop()
            if i not in found:
                found.add(i)
                open_ += self.steps[i].inputs
        return found


def _caller(func: Any) -> Place:
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith((OWN, TORCH)):
        frame = frame.f_back
    code = frame.f_code
    name = func._schema.name.split("::")[1]
    return Place(_short(code.co_filename), frame.f_lineno, code.co_name, name)


def _short(file: str) -> str:
    path = Path(file)
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def place(
    program: Any,
    reference: Callable[..., Any],
    inputs: Mapping[str, Any],
    attach: run.Attach | None,
    *,
    mode: ExactMode,
    name: str,
) -> Place | None:
    """File and line of the first unexplained operation behind a differing value."""
    tower = Tower(len(f"{mode.tower.primes[0]:b}"), mode.tower.levels, mode.tower.seed)
    told = Reference(tower, mode.order, seen=[])
    run.reference(reference, inputs, told, attach is not None)
    trace = Trace(_sorted(told, tower))
    again = ExactMode(tower, mode.order)
    again.record = trace
    ran = run.program(program, inputs, again, attach)
    last = _maker(trace, ran, name)
    return None if last is None else _first(trace, last)


def _sorted(told: Reference, tower: Tower) -> Any:
    assert told.seen is not None
    flat = [np.asarray(x).reshape(-1).astype(np.int64) for x in told.seen]
    values = np.unique(np.concatenate([*flat, np.array([0, 1])]))
    return np.unique(np.concatenate([values, (tower.primes[0] - values)]))


def _maker(trace: Trace, ran: run.Run, name: str) -> int | None:
    values = ran.cuts.seen.get(name) or [ran.outputs.get(name)]
    makers = [trace.maker[id(x)] for x in values if id(x) in trace.maker]
    return max(makers, default=None)


def _first(trace: Trace, last: int) -> Place:
    behind = trace.ancestors(last)
    for i in sorted(behind, reverse=True):
        step = trace.steps[i]
        # A constant explains nothing that it was made like.
        if step.later or (step.known and not step.constant):
            for j in step.inputs:
                trace.steps[j].later = True
    for i in sorted(behind):
        step = trace.steps[i]
        wrong = not step.known and not step.later
        if wrong and all(
            trace.steps[j].known or trace.steps[j].later for j in step.inputs
        ):
            return step.place
    # Every value occurs in the reference, in another place than here.
    return trace.steps[last].place
