"""Context parallelism: the tokens of a packed row split over the ranks of an axis.

KDA (Eq. 17): a rank reads its tokens with an empty memory and, beside it, with the
identity as memory; so it knows its affine summary S -> S M + B and what every token
would read of any start. One all-gather of the summaries and an ordered scan give the
start. Its volume does not depend on the number of tokens. The convolution takes its
window from the ranks before, MLA the latent rows of its first document. What mixes
over depth or features alone stays as it is.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from k3.errors import ShapeError
from k3.kernels import segments
from k3.model import Model, inputs, stored
from k3.model.cache import KDACache, MLACache
from k3.model.inputs import Inputs
from k3.model.kda import KDA
from k3.model.mla import MLA
from k3.model.splice import splice
from k3.model.taps import Taps
from k3.parallel import share
from k3.parallel.ranks import Axis
from k3.parallel.share import Share
from k3.parallel.wire import Parcel, Wire

Lens = tuple[int, ...]


def split(model: Model, axis: Axis, sent_bytes: Counter[str] | None = None) -> Model:
    """Let every mixer take this rank's tokens and the lengths of the whole row.

    Returns model. Gradients are those of the sum of all ranks' losses. Bytes sent to
    others are added to `sent_bytes` under "summaries", "window" and "rows".
    """
    if axis.size == 1:
        return model
    stored.refuse(model, "splitting a row over ranks")
    wire = Wire(axis, Counter() if sent_bytes is None else sent_bytes)
    for module in model.modules():
        if isinstance(module, KDA):
            vars(module)["forward"] = partial(_run_kda, module, wire)
        elif isinstance(module, MLA):
            vars(module)["forward"] = partial(_run_mla, module, wire)
    return model


def run(
    model: Model,
    ids: Tensor,
    cu_seqlens: Tensor,
    axis: Axis,
    *,
    features: Tensor | None = None,
    taps: Taps | None = None,
) -> Tensor:
    """Logits [1 t W] of this rank's tokens ids [1 t], by a model that was `split`.

    `cu_seqlens` are the bounds of the whole row, `features` those of its own
    placeholders. Raises: ShapeError.
    """
    total = int(cu_seqlens[-1])
    lens = segments.lengths(cu_seqlens, total)
    edges = share.bounds(total, axis.size)
    own = edges[axis.rank + 1] - edges[axis.rank]
    if ids.shape != (1, own):
        raise ShapeError(
            f"a rank's tokens must be its share of the row: got {tuple(ids.shape)} on "
            f"rank {axis.rank} of {axis.size} for {total} tokens; pass [1, {own}]"
        )
    x = model.language_model.embed(ids)
    if features is not None:
        x = splice(x, ids, features, model.config.media_placeholder_token_id)
    x = model.language_model.model(x, None, lens, taps)
    out = model.language_model.lm_head(x)
    return out if out.dtype == torch.float64 else out.float()


def _run_kda(
    mixer: KDA, wire: Wire, x: Tensor, cache: None = None, lens: Lens | None = None
) -> Tensor:
    parts = _parts(x, cache, lens, wire)
    own = parts[wire.rank].lens
    empty = mixer.init_cache(len(own), x)
    # A cache that keeps inputs is read token by token: nothing is fused around it.
    given = SplitKDA(empty.state, empty.window, 1, wire=wire, parts=parts)
    return KDA.forward(mixer, x, given, own)


def _run_mla(
    mixer: MLA, wire: Wire, x: Tensor, cache: None = None, lens: Lens | None = None
) -> Tensor:
    parts = _parts(x, cache, lens, wire)
    own = parts[wire.rank].lens
    empty = mixer.init_cache(len(own), x)
    given = SplitMLA(empty.rows, empty.lens, wire=wire, parts=parts)
    return MLA.forward(mixer, x, given, own)


def _parts(
    x: Tensor, cache: object, lens: Lens | None, wire: Wire
) -> tuple[Share, ...]:
    parts = share.shares(lens or (x.shape[1] * wire.size,), wire.size)
    own = parts[wire.rank]
    if cache is not None or x.shape[:2] != (1, own.stop - own.start):
        raise ShapeError(
            "a model split over context ranks takes one packed row without a state: "
            f"got {tuple(x.shape[:2])} on rank {wire.rank} of {wire.size} for "
            f"{parts[-1].stop} tokens; pass this rank's share of a row"
        )
    return parts


def _tail(
    name: str, x: Tensor, wire: Wire, parts: tuple[Share, ...], past: int | None = None
) -> Tensor:
    """Return the last rows [n ...] before x [t ...] of its first document."""
    sent, came = share.tails(parts, wire.rank, past)
    rows = torch.cat([x[len(x) - n :] for n in sent])
    return wire.exchange([Parcel(name, sent, came)], rows)[0]


@dataclass(slots=True)
class SplitKDA(KDACache):
    """The memory of a row's pieces on this rank, the first one's start on others."""

    wire: Wire = field(kw_only=True)
    parts: tuple[Share, ...] = field(kw_only=True)

    def before(self, raw: Tensor) -> Tensor:
        """Return the window of every piece: zeros, of the first what ranks before had.

        `raw` [1 t C].
        """
        past = self.window.shape[1]
        tail = _tail("window", raw[0], self.wire, self.parts, past)
        first = torch.cat([raw.new_zeros(past - len(tail), raw.shape[-1]), tail])
        return torch.cat([first[None].to(self.window.dtype), self.window[1:]])

    def read(self, q: Tensor, new: Inputs, window: Tensor, lens: Lens | None) -> Tensor:
        """Return what the queries read, [1 t H V]."""
        assert lens is not None
        own = self.parts[self.wire.rank]
        if not own.before:
            out, final = inputs.advance(q, new, self.state, lens)
            out, _ = Start.apply(self.wire, out, _began(final[-1]), False)
            return out
        n, V = lens[0], new.v.shape[-1]
        both, ends = alone(q[:, :n], new.cut(0, n), self.state[:1])
        outs, summary = [both[..., :V]], ends
        if len(lens) > 1:
            rest = new.cut(n, len(new))
            out, final = inputs.advance(q[:, n:], rest, self.state[1:], lens[1:])
            outs.append(out)
            summary = _began(final[-1])
        out, start = Start.apply(self.wire, torch.cat(outs, 1), summary, True)
        # [H V K] times what each token reads of the identity, [1 n H K].
        seen = (start @ both[..., V:].unsqueeze(-1)).squeeze(-1)
        return torch.cat([out[:, :n] + seen, out[:, n:]], 1)


@dataclass(slots=True)
class SplitMLA(MLACache):
    """The rows of a row's pieces, the first one's with those that ranks before have."""

    wire: Wire = field(kw_only=True)
    parts: tuple[Share, ...] = field(kw_only=True)
    pieces: list[Tensor] = field(default_factory=list, kw_only=True)

    def append(self, new: Tensor, lens: Lens | None = None) -> None:
        """Take the rows [1 t row] of this rank's tokens."""
        assert lens is not None
        tail = _tail("rows", new[0], self.wire, self.parts)
        first, *rest = new[0].split(list(lens))
        self.pieces = [torch.cat([tail, first]), *rest]

    def of(self, sequence: int) -> Tensor:
        """Return the rows of one piece's document up to its end here."""
        return self.pieces[sequence]


def alone(q: Tensor, new: Inputs, empty: Tensor) -> tuple[Tensor, Tensor]:
    """Read a piece [1 n ...] from an empty memory and, in more rows, from the identity.

    Returns what tokens read [1 n H V+K] and the piece's summary [H V+K K]: B above M.
    Matches: spec.context.segment (transposed).
    """
    *shape, K = new.k.shape
    wide = replace(new, v=torch.cat([new.v, new.v.new_zeros(*shape, K)], -1))
    eye = torch.eye(K, dtype=empty.dtype, device=q.device).expand(1, shape[-1], K, K)
    out, final = inputs.advance(q, wide, torch.cat([empty, eye], -2))
    return out, final[0]


def _began(final: Tensor) -> Tensor:
    """Return the summary of a document that began here: it forgets any start."""
    K = final.shape[-1]
    return torch.cat([final, final.new_zeros(len(final), K, K)], -2)


class Start(torch.autograd.Function):
    """The memory [H V K] at which this rank's first piece starts, and `out` as it is.

    S_0 = 0 and S_{r+1} = S_r M_r + B_r in the order of ranks, from every rank's
    summary [H V+K K] of its last document: B above M, which is 0 where it began here.
    `out` passes through so that every rank's backward pass comes by.
    """

    @staticmethod
    def forward(
        ctx: Any, wire: Wire, out: Tensor, summary: Tensor, goes_on: bool
    ) -> tuple[Tensor, Tensor]:
        """Return (out, start); start is 0 unless a document `goes_on` here."""
        V = summary.shape[-2] - summary.shape[-1]
        told = wire.gather("summaries", summary)
        start = torch.zeros_like(summary[:, :V])
        if goes_on:
            for each in told[: wire.rank]:
                start = start @ each[:, V:] + each[:, :V]
        ctx.wire = wire
        ctx.save_for_backward(start, told[:, :, V:])
        return out.view_as(out), start

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: Tensor, dstart: Tensor) -> tuple[Tensor | None, ...]:
        """Return gradients; those of the summary come from all later ranks' starts."""
        start, moved = ctx.saved_tensors
        found = ctx.wire.gather("summaries", dstart)
        after = torch.zeros_like(dstart)
        for r in range(ctx.wire.size - 1, ctx.wire.rank, -1):
            after = found[r] + after @ moved[r].mT
        return None, dout, torch.cat([after, start.mT @ after], -2), None
