"""equal: is the program that runs the function that the reference defines?"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from torch import nn

from k3.verify.exact import bound, cover, cut, locate, run
from k3.verify.exact.mode import ExactMode
from k3.verify.exact.number import Reference
from k3.verify.exact.report import Difference, Report
from k3.verify.exact.tower import CHAINS, Tower

ROUNDING = 1e-9
"""Shadows this near may be one number, computed in two ways."""
Orders = str | tuple[str, ...]


def equal(
    program: Any,
    reference: Callable[..., Any],
    inputs: Mapping[str, Any],
    *,
    bits: int = 50,
    seeds: int = 3,
    levels: int = 3,
    order: Orders = "shadow",
    cut_points: run.Attach | Sequence[str] | None = None,
    covering: bool = True,
    locating: bool = True,
) -> Report:
    """Compare both at random points, without a tolerance. The report is true or false.

    program      a function called with `inputs` by name, or a module: then its weights
                 are drawn too, and the reference takes them as `weights`.
    reference    the same function over k3.spec, called with the same names; results
                 must have the same nesting and sizes.
    inputs       float arrays and tensors are shadows of random values, all else is
                 passed as it is.
    cut_points   names of submodules, or a function (module, tap) -> hooks; the
                 reference then takes `tap` and calls tap(name, value) at the same.
    order        "shadow", "hash" or both: how top-k and sorting rank.
    """
    started = time.perf_counter()
    orders = (order,) if isinstance(order, str) else order
    report = Report(seeds=seeds, bits=bits, levels=levels, orders=orders)
    sides = _Sides(program, reference, with_weights(program, inputs), cut_points)
    for how, seed in product(orders, range(seeds)):
        sides.compare(report, Tower(bits, levels, seed), how, locating)
        if not report.equal:
            break
    else:
        bound.of(report, program, sides.inputs, sides.attach)
        if covering:
            report.untested = cover.untested(program, sides.inputs, report)
    report.seconds = time.perf_counter() - started
    return report


class _Sides:
    """A program and a reference on the same inputs and cut points."""

    def __init__(
        self, program: Any, reference: Any, inputs: Any, cut_points: Any
    ) -> None:
        self.program, self.reference, self.inputs = program, reference, inputs
        self.attach = _attach(cut_points)

    def compare(self, report: Report, tower: Tower, order: str, locating: bool) -> None:
        """Run both at one random point and fill in the report."""
        mode, other = ExactMode(tower, order), Reference(tower, order)
        ran = run.program(self.program, self.inputs, mode, self.attach)
        cutting = self.attach is not None
        wanted = run.reference(self.reference, self.inputs, other, cutting)
        _compare(report, ran, wanted, tower)
        _remember(report, ran, wanted, tower)
        if report.difference and report.difference.gap < ROUNDING:
            report.undecided = self.agree_in_theory(tower, order)
        if locating and report.difference:
            where = (self.program, self.reference, self.inputs, self.attach)
            report.place = locate.place(*where, mode=mode, name=report.first)

    def agree_in_theory(self, tower: Tower, order: str) -> bool:
        """Whether they are equal where functions are read through exp and powers."""
        bits = 31 if tower.primes[0] < 1 << 31 else 50
        other = Tower(bits, len(CHAINS[bits]), tower.seed, theory=True)
        ran = run.program(
            self.program, self.inputs, ExactMode(other, order), self.attach
        )
        wanted = run.reference(
            self.reference,
            self.inputs,
            Reference(other, order),
            self.attach is not None,
        )
        report = Report()
        _compare(report, ran, wanted, other)
        return report.equal


def _attach(cut_points: run.Attach | Sequence[str] | None) -> run.Attach | None:
    if cut_points is None or not isinstance(cut_points, Sequence):
        return cut_points
    return cut.by_name(cut_points)


def with_weights(program: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs, and a module's float parameters and buffers where it is one."""
    out = dict(inputs)
    if isinstance(program, nn.Module) and "weights" not in out:
        tensors = [*program.named_parameters(), *program.named_buffers()]
        out["weights"] = {n: p.detach() for n, p in tensors if p.is_floating_point()}
    return out


def _compare(report: Report, ran: run.Run, wanted: run.Run, tower: Tower) -> None:
    """Fill the report with the first difference of two runs, in program order."""
    for name, got, want in _pairs(ran, wanted, tower):
        report.difference = differ(name, got, want)
        if report.difference:
            report.equal = False
            return
        report.compared += got[0].size
    names = list(ran.outputs), list(wanted.outputs)
    if names[0] != names[1]:
        report.equal = False
        report.problem = f"the program gives {names[0]}, the reference {names[1]}"


def _pairs(
    ran: run.Run, wanted: run.Run, tower: Tower
) -> Iterator[tuple[str, Any, Any]]:
    both = [n for n in ran.cuts.seen if n in wanted.cuts.seen]
    for name in both:
        yield name, ran.cuts.rows(name), wanted.cuts.rows(name)
    for name, got in ran.outputs.items():
        if name in wanted.outputs:
            want = run.values(wanted.outputs[name], tower)
            yield name, run.values(got, tower), want


def differ(name: str, got: Any, want: Any) -> Difference | None:
    """The first entry in which two values differ, or None."""
    if got[0].size != want[0].size:
        sizes = got[0].shape, want[0].shape
        return Difference(
            f"{name} (shape {sizes[0]} against {sizes[1]})", (), 0, 0, 0, 0
        )
    shape = want[0].shape if want[0].ndim > got[0].ndim else got[0].shape
    bad = np.flatnonzero(got[0].reshape(-1) != want[0].reshape(-1))
    if not bad.size:
        return None
    at = tuple(int(i) for i in np.unravel_index(bad[0], shape)) if shape else ()
    left, right = (float(x[1].reshape(-1)[bad[0]]) for x in (got, want))
    return Difference(name, at, left, right, int(bad.size), int(got[0].size))


def _remember(report: Report, ran: run.Run, wanted: run.Run, tower: Tower) -> None:
    assert ran.mode is not None
    report.cut_points = len(ran.cuts.seen)
    report.ops |= ran.mode.ops
    report.margin = min(report.margin, ran.mode.margin)
    report.readings |= tower.readings
    for side, notes in (("program", ran.notes), ("reference", wanted.notes)):
        report.notes |= {f"{side}: {what}": n for what, n in notes.items()}
    apart = set(ran.cuts.seen) ^ set(wanted.cuts.seen)
    if apart:
        some = ", ".join(sorted(apart)[:5])
        report.notes[f"cut points on one side only: {some}"] = len(apart)
