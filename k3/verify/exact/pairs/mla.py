"""Gated MLA: expanded, absorbed and in passes over the context, and the layer."""

from typing import Any

import torch
from torch import nn

from k3.kernels import mla
from k3.spec import mla as spec
from k3.spec import ops
from k3.verify.exact.pairs.pair import Pair, Shadows


def _inputs(sizes: dict[str, int], T: int, S: int) -> dict[str, Any]:
    draw, n = Shadows(5), sizes
    return {
        "q": draw.normal(n["heads"], T, n["content"] + n["shared"]),
        "W": draw.normal(n["heads"], n["content"] + n["value"], n["rank"]),
        "latents": draw.normal(S, n["rank"]),
        "shared": draw.normal(S, n["shared"]),
    }


def _sizes(**changed: int) -> dict[str, int]:
    return {"heads": 3, "content": 4, "shared": 2, "value": 7, "rank": 5} | changed


def _causal(form: Any, q: Any, W: Any, latents: Any, shared: Any) -> Any:
    """A form of the spec for the last T of S tokens: [H T V]."""
    T, S = q.shape[1], len(latents)
    rows = [
        [
            form(q[h, t], W[h], latents[: S - T + t + 1], shared[: S - T + t + 1])
            for t in range(T)
        ]
        for h in range(q.shape[0])
    ]
    return ops.stack([ops.stack(row) for row in rows])


def expanded(
    T: int = 5, S: int = 9, *, workspace: int | None = None, **sizes: int
) -> Pair:
    """kernels.mla.attend on keys and values written out, against Eq. 7 expanded."""
    n = _sizes(**sizes)
    scale = (n["content"] + n["shared"]) ** -0.5

    def program(q: Any, W: Any, latents: Any, shared: Any) -> Any:
        content, value = W[:, : n["content"]], W[:, n["content"] :]
        flat = shared.expand(n["heads"], *shared.shape)
        keys = torch.cat([latents @ content.mT, flat], -1)
        values = latents @ value.mT
        return mla.attend(q[None], keys[None], values[None], scale, workspace)[0]

    def reference(q: Any, W: Any, latents: Any, shared: Any) -> Any:
        return _causal(spec.expanded, q, W, latents, shared)

    return Pair("mla.attend", program, reference, _inputs(n, T, S))


def absorbed(T: int = 3, S: int = 8, *, page: int | None = None, **sizes: int) -> Pair:
    """kernels.mla.absorbed over cached rows, paged or not, against Eq. 7 expanded."""
    n = _sizes(**sizes)
    scale, content = (n["content"] + n["shared"]) ** -0.5, n["content"]

    def program(q: Any, W: Any, latents: Any, shared: Any) -> Any:
        moved = q[..., :content] @ W[:, :content]
        rows, table = torch.cat([latents, shared], -1)[None], None
        if page:
            rows, table = _pages(rows[0], page)
        query = torch.cat([moved, q[..., content:]], -1)[None]
        kwargs = {"latent_dim": n["rank"], "scale": scale}
        seen = mla.absorbed(query, rows, table, (S,), **kwargs)[0]
        return seen @ W[:, content:].mT

    def reference(q: Any, W: Any, latents: Any, shared: Any) -> Any:
        return _causal(spec.expanded, q, W, latents, shared)

    return Pair("mla.absorbed", program, reference, _inputs(n, T, S))


def _pages(rows: Any, page: int) -> tuple[Any, Any]:
    """Rows cut into pages that lie in reverse order, and the table that knows."""
    count = -(-rows.shape[0] // page)
    missing = count * page - rows.shape[0]
    padded = torch.cat([rows, rows.new_zeros(missing, rows.shape[1])])
    pool = padded.view(count, page, -1).flip(0)
    return pool, torch.arange(count).flip(0)[None]


def layer(module: nn.Module, tokens: int = 7) -> Pair:
    """A whole MLA layer [1 T D] against mla.sequence."""
    width = module.q_a_proj.weight.shape[1]  # type: ignore[union-attr, index]
    heads: Any = module.heads

    def reference(weights: Any, x: Any) -> Any:
        xs = [x[0, t] for t in range(tokens)]
        return spec.sequence(weights, xs, heads=heads)[1][None]

    given = {"x": Shadows(6).normal(1, tokens, int(width))}
    return Pair("MLA layer", module, reference, given)
