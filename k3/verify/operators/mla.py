"""Attention of gated MLA over cached rows, written out or absorbed."""

import math
from typing import Any

import torch
from torch import Tensor

from k3.kernels import mla
from k3.spec import mla as spec
from k3.spec import ops
from k3.verify.exact.pairs.pair import Shadows
from k3.verify.operators.operator import Operator, Reading, Values, changed, swapped

CONTENT, SHARED, VALUE = 4, 2, 7
LAYOUTS = {
    "q": "H T n+r: content, then shared; not scaled",
    "W": "H n+V R: key rows, then value rows of kv_b_proj",
    "latents": "S R: normed latents of all tokens",
    "shared": "S r: shared keys of all tokens",
    "out": "H T V: outputs of the last T of S tokens, before gate and o_proj",
}


def _draw(draw: Shadows) -> Values:
    H, T, S, R = 3, 4, 9, 5
    return {
        "q": draw.normal(H, T, CONTENT + SHARED),
        "W": draw.normal(H, CONTENT + VALUE, R),
        "latents": draw.normal(S, R),
        "shared": draw.normal(S, SHARED),
    }


def _expanded(q: Tensor, W: Tensor, latents: Tensor, shared: Tensor) -> Tensor:
    content = q.shape[-1] - shared.shape[-1]
    flat = shared.expand(len(W), *shared.shape)
    keys = torch.cat([latents @ W[:, :content].mT, flat], -1)
    values = latents @ W[:, content:].mT
    return mla.attend(q[None], keys[None], values[None], q.shape[-1] ** -0.5)[0]


def _absorbed(q: Tensor, W: Tensor, latents: Tensor, shared: Tensor) -> Tensor:
    content = q.shape[-1] - shared.shape[-1]
    moved = torch.cat([q[..., :content] @ W[:, :content], q[..., content:]], -1)
    rows = torch.cat([latents, shared], -1)[None]
    seen = mla.absorbed(
        moved[None],
        rows,
        None,
        (len(latents),),
        latent_dim=latents.shape[-1],
        scale=q.shape[-1] ** -0.5,
    )
    return seen[0] @ W[:, content:].mT


def _reference(q: Any, W: Any, latents: Any, shared: Any) -> Any:
    T, S = q.shape[1], len(latents)
    ends = [S - T + t + 1 for t in range(T)]
    heads = [
        ops.stack(
            [
                spec.expanded(q[h, t], W[h], latents[:n], shared[:n])
                for t, n in enumerate(ends)
            ]
        )
        for h in range(len(W))
    ]
    return ops.stack(heads)


def _values_first(W: Tensor) -> Tensor:
    return torch.cat([W[:, CONTENT:], W[:, :CONTENT]], 1)


def _scaled(q: Tensor) -> Tensor:
    return q / math.sqrt(q.shape[-1])


READINGS = (
    Reading(
        "scaling the query by (n+r)^-1/2: the function leaves the scale out",
        changed(q=_scaled),
    ),
    Reading(
        "multiplying the query by (n+r)^1/2: the scale is applied twice",
        changed(q=lambda q: q * math.sqrt(q.shape[-1])),
    ),
    Reading(
        "a scale of n^-1/2 undone: it leaves the shared part out of the width",
        changed(q=lambda q: q * math.sqrt(CONTENT / q.shape[-1])),
    ),
    Reading("passing value rows before key rows in W", changed(W=_values_first)),
    Reading(
        "passing the shared part of the query first",
        changed(q=lambda q: q.roll(SHARED, -1)),
    ),
    Reading(
        "transposing heads and time: it takes and returns [T H .]",
        swapped("q", axes=(0, 1)),
        swapped("out", axes=(0, 1)),
    ),
)


def _attention(name: str, says: str, program: Any) -> Operator:
    return Operator(
        name=name,
        says=says,
        program=program,
        reference=_reference,
        draw=_draw,
        layouts=LAYOUTS,
        outputs=("out",),
        readings=READINGS,
    )


OPERATORS = (
    _attention("mla.expanded", "Eq. 7, keys and values written out", _expanded),
    _attention("mla.absorbed", "Eq. 7 over latent rows, the same function", _absorbed),
)
