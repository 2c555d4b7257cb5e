"""Two ways of running one model in exact arithmetic: the same function of its weights?

Both run on the first engine with the same random weights and are cut at every sublayer,
so a difference is named by its layer, token and coordinate. What the sublayers compute
is held against the equations by k3.verify.exact.pairs.
"""

import time
from typing import Any

from k3.verify.exact import bound, run
from k3.verify.exact.equal import differ, with_weights
from k3.verify.exact.mode import ExactMode
from k3.verify.exact.pairs.pair import Pair
from k3.verify.exact.report import Report
from k3.verify.exact.tower import Tower
from k3.verify.refine.check import Setting

BITS, LEVELS = 50, 3


def same(left: Pair, right: Pair, setting: Setting, *, inside: bool = True) -> Report:
    """Compare two programs over one module at a random point for each seed.

    With `inside` False the two do not run the same tokens: outputs alone are compared.
    """
    started = time.perf_counter()
    seeds = setting.seeds
    report = Report(seeds=seeds, bits=BITS, levels=LEVELS, orders=("shadow",))
    for seed in range(setting.seed, setting.seed + seeds):
        tower = Tower(BITS, LEVELS, seed)
        one, other = (_run(pair, tower) for pair in (left, right))
        if inside:
            _compare_cuts(report, one, other)
        if report:
            _compare_outputs(report, one, other, tower)
        report.cut_points = len(one.cuts.seen)
        if not report:
            break
    else:
        bound.of(report, right.program, _inputs(right), _attach(right))
    report.seconds = time.perf_counter() - started
    return report


def _inputs(pair: Pair) -> dict[str, object]:
    return with_weights(pair.program, pair.inputs)


def _attach(pair: Pair) -> run.Attach | None:
    attach = pair.cut_points
    assert attach is None or callable(attach)
    return attach


def _run(pair: Pair, tower: Tower) -> run.Run:
    mode = ExactMode(tower, "shadow")
    return run.program(pair.program, _inputs(pair), mode, _attach(pair))


def _compare_cuts(report: Report, one: run.Run, other: run.Run) -> None:
    """Fill in the first cut point, in program order, that differs."""
    for name in one.cuts.seen:
        if report and name in other.cuts.seen:
            _part(report, name, one.cuts.rows(name), other.cuts.rows(name))


def _compare_outputs(
    report: Report, one: run.Run, other: run.Run, tower: Tower
) -> None:
    for name, got in one.outputs.items():
        both = (run.values(x, tower) for x in (got, other.outputs[name]))
        _part(report, name, *both)


def _part(report: Report, name: str, got: Any, want: Any) -> None:
    report.difference = report.difference or differ(name, got, want)
    report.equal = report.difference is None
    report.compared += got[0].size
