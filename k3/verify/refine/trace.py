"""Two runs of a model value by value, and the first token and layer where they part."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from k3.model import DecodeState, Model
from k3.verify.refine.check import Check
from k3.verify.streaming import relative


@dataclass(slots=True)
class Trace:
    """Values of a run by name, tokens first, in the order of the computation."""

    values: dict[str, list[Tensor]] = field(default_factory=dict)
    state: DecodeState | None = None

    def add(self, name: str, value: Tensor) -> None:
        """Append the rows [T .] of a pass."""
        self.values.setdefault(name, []).append(value.detach())

    def rows(self, name: str) -> Tensor:
        """All tokens of a value."""
        return torch.cat(self.values[name])


@torch.no_grad()
def trace(
    model: Model,
    ids: Sequence[int],
    sizes: Sequence[int],
    state: DecodeState | None = None,
) -> Trace:
    """Run tokens in pieces of these sizes, from a state or from nothing."""
    state, out, at = state or model.init_state(1), Trace(), 0
    for size in sizes:
        piece = torch.tensor([list(ids[at : at + size])], device=model.device)
        taps: dict[str, Tensor] = {}
        logits, state = model(piece, state=state, taps=taps)
        for name, value in taps.items():
            # A choice of experts is not near or far; its effect on values is.
            if value.is_floating_point() and "block_sparse_moe" not in name:
                out.add(name, value[0])
        out.add("logits", logits[0])
        at += size
    out.state = state
    return out


def compare(what: str, got: Trace, want: Trace, bound: float) -> Check:
    """Both runs at every token, layer and coordinate, and their last states."""
    worst, parted = 0.0, []
    for order, name in enumerate(want.values):
        theirs, ours = want.rows(name).double(), got.rows(name).double()
        gap = (ours - theirs).abs() / theirs.abs().max().clamp_min(1e-30)
        gap = torch.nan_to_num(gap, nan=torch.inf)
        worst = max(worst, float(gap.max()))
        bad = (gap > bound).nonzero()
        if len(bad):
            token, at = int(bad[0, 0]), int(bad[0, 1])
            both = float(ours[token, at]), float(theirs[token, at])
            parted.append((token, order, name, at, both))
    state, name = state_gap(got.state, want.state)
    ok = not parted and state <= bound
    first = f"the state after the last token, {name}" if state > bound else ""
    if parted:
        token, _, name, at, both = min(parted)
        first = f"{name}, token {token}, coordinate {at}: {both[0]:.7g} against "
        first += f"{both[1]:.7g}"
    detail = f"largest error {worst:.1e} in {len(want.values)} values, "
    detail += f"{state:.1e} in the state (at most {bound:.0e})"
    return Check(what=what, kind="float", ok=ok, detail=detail, first=first)


def state_gap(got: DecodeState | None, want: DecodeState | None) -> tuple[float, str]:
    """The largest relative difference of two states, and the tensor that has it."""
    if got is None or want is None:
        return 0.0, ""
    ours, theirs = got.pack(), want.pack()
    found = {n: relative(ours[n], x) for n, x in theirs.items() if _carried(n, x)}
    name = max(found, key=lambda n: found[n], default="")
    return found.get(name, 0.0), name


def _carried(name: str, value: Tensor) -> bool:
    """Whether a tensor is what the next token reads, and not kept for a rewind."""
    last = name.rpartition(".")[2]
    return last in ("state", "window", "rows") and bool(value.numel())


def same_bits(what: str, got: DecodeState, want: DecodeState) -> Check:
    """Two states bit for bit."""
    ours, theirs = got.pack(), want.pack()
    names = [n for n, x in theirs.items() if _carried(n, x)]
    apart = [n for n in names if not torch.equal(ours[n], theirs[n])]
    first = f"{apart[0]} of the state" if apart else ""
    detail = f"{len(names)} tensors of the state"
    return Check(what=what, kind="bits", ok=not apart, detail=detail, first=first)
