"""The equation of each kind of module in Arb, from a machine's inputs and caches.

Layouts: kernels hold KDA's memory as [S H V K] and a window of projected rows, oldest
first; the spec writes [K V] and windows newest first.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from k3.kernels import situ as kernel_situ
from k3.model.cache import KDACache, MLACache
from k3.model.kda import KDA
from k3.model.linear import RMSNorm
from k3.model.mla import MLA
from k3.model.mlp import MLP
from k3.model.moe import MoE
from k3.model.vision import Block, PatchEmbed, Projector, ViTNorm
from k3.spec import attn_res, kda, kda_layer, mla, norm, ops, situ, vision
from k3.verify.enclose import arbs, capture, truth
from k3.verify.enclose.ball import mapped
from k3.verify.enclose.capture import Retrieval
from k3.verify.enclose.truth import Routed, array, parameters
from k3.verify.exact.pairs.layout import by_sequence

Found = dict[str, Any]
Taken = list[tuple[int, ...]] | None
Equation = Callable[[Any, Sequence[Any], Taken], Found]


def _rows(f: Callable[[Any], Any], x: Tensor) -> Any:
    """f of every row [D] of x [... D], in the shape of x but for the last axis."""
    flat = array(x.reshape(-1, x.shape[-1]))
    made = ops.stack([f(flat[t]) for t in range(len(flat))])
    return made.reshape(*x.shape[:-1], -1)


def _rms_norm(module: Any, args: Sequence[Any], taken: Taken) -> Found:
    w = array(module.weight)
    return {"out": _rows(lambda x: norm.rms_norm(x, w, module.eps), args[0])}


def _linear(module: Any, args: Sequence[Any], taken: Taken) -> Found:
    w = parameters(module)
    bias = w.get("bias", 0)
    return {"out": _rows(lambda x: w["weight"] @ x + bias, args[0])}


def _mlp(module: Any, args: Sequence[Any], taken: Taken) -> Found:
    w, beta, linear = parameters(module), module.beta, module.linear_beta
    return {"out": _rows(lambda x: situ.mlp(w, x, beta, linear), args[0])}


def _situ(module: Any, args: Sequence[Any], taken: Taken) -> Found:
    gate, up, beta, linear = args
    return {"out": situ.situ(array(gate), array(up), beta, linear)}


def _retrieval(module: Retrieval, args: Sequence[Any], taken: Taken) -> Found:
    sources, prefix = args
    each = [array(s) for s in [*sources, *([] if prefix is None else [prefix])]]
    named = {"x_norm.weight": array(module.norm.weight)}
    named["x_proj.weight"] = array(module.proj.weight)
    q, shape = attn_res.query(named, "x"), each[0].shape
    flat = [s.reshape(-1, shape[-1]) for s in each]
    made = [
        attn_res.retrieve(q, ops.stack([s[t] for s in flat]), module.eps)
        for t in range(len(flat[0]))
    ]
    return {"out": ops.stack(made).reshape(shape)}


def _moe(module: Any, args: Sequence[Any], taken: Taken) -> Found:
    weights = parameters(module)
    kept: dict[str, Any] = {}
    routed: list[Routed] = []

    def token(x: Any) -> Any:
        given = None if taken is None else taken[len(routed)]
        y, made = truth.sparse(weights, module, x, given, kept)
        routed.append(made)
        return y

    return {"out": _rows(token, args[0]), "routed": routed}


def _kda(module: Any, args: Sequence[Any], taken: Taken) -> Found:
    x, cache = args[0], args[1] if len(args) > 1 else None
    cache = cache or module.init_cache(len(x), x)
    made = [_kda_row(module, x[b], cache, b) for b in range(len(x))]
    out, state, window = (ops.stack(list(part)) for part in zip(*made, strict=True))
    after = {"state": state, "window": window} if len(args) > 1 and args[1] else {}
    return {"out": out, **after}


def _kda_row(module: Any, x: Tensor, cache: KDACache, b: int) -> tuple[Any, Any, Any]:
    """One sequence [T D] from its cache: outputs, memory [H V K] and window after."""
    w, heads, keys = parameters(module), module.heads, module.heads * module.K
    xs = array(x)
    window = list(array(cache.window[b]))
    S = [m.T for m in array(cache.state[b])]
    weights = [w[f"{name}_conv1d.weight"][:, 0, :] for name in "qkv"]
    outs = []
    for t in range(len(xs)):
        projected = [w[f"{name}_proj.weight"] @ xs[t] for name in "qkv"]
        window.append(ops.concat(projected))
        seen = ops.stack(window[: -1 - weights[0].shape[1] : -1])
        conv = ops.silu(kda.short_conv(seen, ops.concat(weights)))
        q, k = (
            norm.l2_norm(ops.reshape(conv[at], heads, -1))
            for at in (slice(keys), slice(keys, 2 * keys))
        )
        v = ops.reshape(conv[2 * keys :], heads, -1)
        q = q / ops.sqrt(ops.lift(q, module.K))
        z = w["f_b_proj.weight"] @ (w["f_a_proj.weight"] @ xs[t]) + w["dt_bias"]
        z, o = ops.reshape(z, heads, -1), []
        beta = ops.sigmoid(w["b_proj.weight"] @ xs[t])
        for h in range(heads):
            alpha = kda.retention(z[h], w["A_log"][h], module.lower_bound)
            S[h], read = kda.step(S[h], q[h], k[h], v[h], alpha=alpha, beta=beta[h])
            o.append(read)
        outs.append(kda_layer.readout(w, xs[t], ops.stack(o), module.o_norm.eps))
    past = cache.window.shape[1]
    kept = ops.stack(window[len(window) - past :])
    return ops.stack(outs), ops.stack([m.T for m in S]), kept


def _mla(module: Any, args: Sequence[Any], taken: Taken) -> Found:
    x, cache = args[0], args[1] if len(args) > 1 else None
    w, outs, rows = parameters(module), [], []
    for b in range(len(x)):
        before = [] if cache is None else list(array(cache.of(b)))
        old = [mla.Row(r[: module.latent], r[module.latent :]) for r in before]
        made = []
        for token in array(x[b]):
            old, y = mla.step(w, old, token, heads=module.heads)
            made.append(y)
        outs.append(ops.stack(made))
        rows.append(ops.stack([ops.concat([r.latent, r.shared]) for r in old]))
    found: Found = {"out": ops.stack(outs)}
    if cache is not None:
        found["rows"] = ops.stack(rows)
    return found


def _vit_norm(module: Any, args: Sequence[Any], taken: Taken) -> Found:
    w, eps = array(module.weight), torch.finfo(args[0].dtype).eps
    return {"out": _rows(lambda x: norm.rms_norm(x, w, eps), args[0])}


def _patch_embed(module: Any, args: Sequence[Any], taken: Taken) -> Found:
    pixels, grids = array(args[0]), args[1]
    weights = {f"patch_embed.{n}": w for n, w in parameters(module).items()}
    items = [pixels[at] for at in by_sequence([t * h * w for t, h, w in grids])]
    pairs = zip(items, grids, strict=True)
    return {"out": ops.concat([vision.embed(weights, x, g) for x, g in pairs])}


def _block(module: Any, args: Sequence[Any], taken: Taken) -> Found:
    x, grids, weights = array(args[0]), args[1], parameters(module)
    eps = torch.finfo(args[0].dtype).eps
    how: vision.Attention = "divided" if module.divided else "joint"
    places = by_sequence([t * h * w for t, h, w in grids])
    made = [
        vision.block(weights, x[at], g, heads=module.heads, attention=how, eps=eps)
        for at, g in zip(places, grids, strict=True)
    ]
    return {"out": ops.concat(made)}


def _projector(module: Any, args: Sequence[Any], taken: Taken) -> Found:
    eps = module.post_norm.eps
    return {"out": vision.project(parameters(module), array(args[0]), eps)}


EQUATIONS: dict[Any, Equation] = {
    RMSNorm: _rms_norm,
    nn.Linear: _linear,
    MLP: _mlp,
    Retrieval: _retrieval,
    MoE: _moe,
    KDA: _kda,
    MLA: _mla,
    ViTNorm: _vit_norm,
    PatchEmbed: _patch_embed,
    Block: _block,
    Projector: _projector,
}


def find(
    program: Any, args: Sequence[Any], equation: Any = True
) -> Callable[[Taken], Found] | None:
    """A program's equation on these inputs, waiting for the experts that it took.

    `equation` True looks the kind up; a function is one itself; False is none. Packed
    sequences, paged or uneven caches and inputs without an entry have none.
    """
    if callable(equation):
        return lambda taken: capture.results(equation(*mapped(list(args), exact)), ())
    sizes = [x.numel() for x in args if isinstance(x, Tensor)]
    packed = any(isinstance(a, tuple) for a in args[1:])
    if not equation or packed or 0 in sizes or any(_apart(a) for a in args):
        return None
    if program is kernel_situ.situ:
        return partial(_situ, program, args)
    kinds = (e for kind, e in EQUATIONS.items() if isinstance(program, kind))
    found = next(kinds, None)
    return None if found is None else partial(found, program, args)


def exact(x: Tensor) -> Any:
    """An input as a function over k3.spec takes it."""
    return array(x) if x.is_floating_point() else x.numpy()


def _apart(cache: Any) -> bool:
    paged = isinstance(cache, MLACache) and cache.table is not None
    return paged or (isinstance(cache, MLACache) and len(set(cache.lens)) > 1)


def floats(x: Any) -> Any:
    """Midpoints, and what may be lost by reading them as floats."""
    mid = arbs.middle(x)
    return mid, arbs.radius(x) + np.abs(mid) * 2.0**-52
