"""A whole run: true error of its logits, margins of its choices, all modules inside."""

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from k3 import errors
from k3.model import Model, stored
from k3.verify.enclose import capture, truth
from k3.verify.enclose.module import module
from k3.verify.enclose.report import ModuleReport
from k3.verify.enclose.rounding import LIBRARY_ULP, Rounding
from k3.verify.enclose.summary import Flip, Report


@torch.no_grad()
def run(
    model: Model,
    tokens: Sequence[int] | Tensor,
    *,
    modules: bool = True,
    equation: bool = True,
    ulp: int = LIBRARY_ULP,
) -> Report:
    """Run tokens in one pass, and the spec on the same weights over the real numbers.

    modules    whether to enclose every module of the run too.
    equation   whether those are held against the spec's value as well.
    ulp        accuracy of library functions, in units in the last place.

    Raises: RequestError for no tokens, more than one sequence, unknown tokens, weights
    that are not finite, or a model that is not on the CPU.
    """
    started = time.perf_counter()
    ids = _tokens(tokens)
    _check(model)
    row = torch.tensor([ids], device=model.device)
    taps: dict[str, Tensor] = {}
    with capture.calls(model) as made:
        logits, _ = model(row, state=model.init_state(1), taps=taps)
    best, along = truth.both(model, ids, _routes(taps))
    report = _report(model, logits[0].cpu().double(), best, along)
    if modules:
        options: dict[str, Any] = {"ulp": ulp, "equation": equation}
        report.modules = [_enclosed(call, options) for call in made]
        report.assumptions = Rounding(ulp=ulp).lines()
    report.seconds = time.perf_counter() - started
    return report


def _enclosed(call: capture.Call, options: dict[str, Any]) -> ModuleReport:
    return module(call.program, *call.args, got=call.got, name=call.name, **options)


def _tokens(tokens: Sequence[int] | Tensor) -> list[int]:
    flat = tokens.tolist() if isinstance(tokens, Tensor) else list(tokens)
    if len(flat) == 1 and isinstance(flat[0], list):
        flat = flat[0]
    whole = all(isinstance(t, int) and not isinstance(t, bool) for t in flat)
    if not flat or not whole:
        shown = "none" if not flat else repr(flat)[:60]
        raise errors.RequestError(
            f"enclose runs one sequence of at least one token id: got {shown}; give a "
            "list of whole numbers"
        )
    return flat


def _check(model: Model) -> None:
    if model.device.type != "cpu":
        raise errors.RequestError(
            f"enclose runs on the CPU: got a model on {model.device}; load it with "
            "--device cpu, or enclose its modules with what the device made as got="
        )
    stored.refuse(model, "enclose")
    for name, p in model.named_parameters():
        if not bool(torch.isfinite(p).all()):
            raise errors.RequestError(
                f"enclose needs finite weights: got one that is not in {name}; mend "
                "the checkpoint"
            )


def _routes(taps: dict[str, Tensor]) -> dict[tuple[int, int], list[int]]:
    """Experts that the run took, by (layer, token)."""
    found: dict[tuple[int, int], list[int]] = {}
    for name, index in taps.items():
        if name.endswith(".block_sparse_moe.index"):
            layer = int(name.split(".")[1])
            found |= {(layer, t): e for t, e in enumerate(index.tolist())}
    return found


def _report(model: Model, got: Tensor, best: Any, along: Any) -> Report:
    leads = best.logits.topk(2, -1).values.diff(dim=-1).neg()[:, 0]
    at = int(leads.argmin())
    mine, theirs = got.argmax(-1), best.logits.argmax(-1)
    flips = [
        Flip(layer=i, token=t, run=r.taken, spec=r.best, margin=r.margin)
        for (i, t), r in along.routed.items()
        if r.taken != r.best
    ]
    return Report(
        dtype=str(model.dtype).removeprefix("torch."),
        tokens=len(got),
        error=_apart(got, best.logits),
        error_on_route=_apart(got, along.logits),
        scale=float(best.logits.abs().max()),
        radius=best.radius,
        bits=best.bits,
        margins={at: r.margin for at, r in best.routed.items()},
        flips=sorted(flips, key=lambda f: (f.token, f.layer)),
        greedy_margin=float(leads[at]),
        greedy_at=at,
        greedy_flips=(mine != theirs).nonzero()[:, 0].tolist(),
    )


def _apart(got: Tensor, want: Tensor) -> float:
    gap = (got - want).abs().max()
    return float(torch.nan_to_num(gap, nan=torch.inf))
