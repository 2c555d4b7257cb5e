"""context: a context cut over ranks and joined by affine summaries is the sequence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from k3.kernels import choose
from k3.kernels import kda as kernel
from k3.verify.exact.pairs import kda, mla
from k3.verify.refine.check import Check, Setting, exactly
from k3.verify.refine.stream import splits
from k3.verify.refine.trace import trace
from k3.verify.streaming import relative


@dataclass(frozen=True, slots=True)
class Pass:
    """What one KDA layer gave its kernel, and what came back."""

    tokens: tuple[Tensor, ...]
    state: Tensor
    out: Tensor
    final: Tensor


def context(setting: Setting) -> Iterator[Check]:
    """Context-parallel evaluation by affine summaries = sequential."""
    linear = setting.model.config.text.linear_attn_config
    if setting.exact:
        given = {"covering": False, "seeds": setting.seeds}
        sizes = {"K": min(linear.head_dim, 8), "V": min(linear.v_dim, 8), "heads": 1}
        report = kda.ranks((2, 7, 9), **sizes).check(**given)
        yield exactly("KDA over ranks of 2, 7 and 9 tokens = the running tiles", report)
        report = mla.expanded(3, 8, workspace=3).check(**given)
        yield exactly("MLA merged from passes over the context = one softmax", report)
    passes = _passes(setting)
    for sizes_ in splits(setting.tokens, setting.seed):
        yield _check(passes, sizes_, setting.bound)


def _passes(setting: Setting) -> list[Pass]:
    """Every KDA layer's kernel call in a pass over the whole sequence."""
    found: list[Pass] = []
    original = kernel.chunk

    def spy(*tokens: Tensor, state: Tensor, **options: Any) -> object:
        out, final = original(*tokens, state=state, **options)
        found.append(Pass(tokens, state, out, final))
        return out, final

    # PyTorch's form: the native pass does not stop at the kernel.
    with choose.use("torch"), mock.patch.object(kernel, "chunk", spy):
        trace(setting.model, setting.ids, [setting.tokens])
    return found


@torch.no_grad()
def _check(passes: Sequence[Pass], sizes: Sequence[int], bound: float) -> Check:
    """All layers over ranks of these sizes."""
    worst, first = 0.0, ""
    for layer, one in enumerate(passes):
        out, final = over_ranks(one, sizes)
        for name, got, want in (("out", out, one.out), ("state", final, one.final)):
            error = relative(got, want)
            worst = max(worst, error)
            if error > bound and not first:
                first = _place(f"KDA layer {layer}, {name}", got, want, bound)
    ok = bool(passes) and not first
    shown = ", ".join(map(str, sizes))
    return Check(
        what=f"ranks of {shown} tokens, on the layers' own inputs = sequential",
        kind="float",
        ok=ok,
        detail=f"{len(passes)} KDA layers, largest error {worst:.1e}",
        first=first,
    )


def _place(name: str, got: Tensor, want: Tensor, bound: float) -> str:
    gap = (got.double() - want.double()).abs() / want.double().abs().max()
    # NaN is beyond every bound.
    at = (~(gap <= bound)).nonzero()[0].tolist()
    axes = "token, head, channel" if name.endswith("out") else "sequence, head, V, K"
    index = tuple(at)
    both = f"{float(got[index]):.7g} against {float(want[index]):.7g}"
    return f"{name} at {at} ({axes}): {both}"


def over_ranks(one: Pass, sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Eq. 17 on the running kernel: summaries apart, their scan, outputs apart.

    A summary is S -> S M + B in the running layout [V K]: B is the state that a rank
    reaches from zero, M what it makes of the identity while nothing is written.
    """
    parts = list(zip(*(x.split(list(sizes)) for x in one.tokens), strict=True))
    starts = [one.state]
    for part in parts:
        M, B = _summary(part, one.state)
        starts.append(starts[-1] @ M + B)
    outs = [
        kernel.chunk(*part, state=start, lens=(len(part[0]),))[0]
        for part, start in zip(parts, starts, strict=False)
    ]
    return torch.cat(outs), starts[-1]


def _summary(part: Sequence[Tensor], like: Tensor) -> tuple[Tensor, Tensor]:
    """M [1 H K K] and B [1 H V K] of one rank's tokens."""
    q, k, v, g, beta = part
    H, K, lens = k.shape[1], k.shape[2], (len(k),)
    eye = torch.eye(K, dtype=like.dtype, device=like.device).expand(1, H, K, K)
    silent = v.new_zeros(len(v), H, K)
    M = kernel.chunk(q, k, silent, g, beta, state=eye, lens=lens)[1]
    B = kernel.chunk(q, k, v, g, beta, state=torch.zeros_like(like), lens=lens)[1]
    return M, B
