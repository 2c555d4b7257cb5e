"""The widget of the tiny model: what it keeps and chooses, token by token.

The model runs once at build, on one text; the page looks the record up by token.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import torch

import k3
from k3.model import cache as caches
from k3.reader.widgets.widget import Control, Widget
from k3.spec import attn_res, ops

TEXT = "Return a new list of the items"
_LAYERS = 9
_SPARSE = range(1, _LAYERS)
_SOURCES = 5


@cache
def record(text: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Tokens of a text, and for each: states, cached rows, depth weights, experts."""
    model, tokenizer = k3.load("tiny", dtype=torch.float32), k3.tokenizer("tiny")
    ids = tokenizer.encode(text)
    state, steps = model.init_state(1), []
    for place, token in enumerate(ids):
        taps: dict[str, torch.Tensor] = {}
        with torch.no_grad():
            _, state = model(torch.tensor([[token]]), state=state, taps=taps)
        steps.append(_look(model, state, taps, place + 1))
    return [tokenizer.decode([token]) for token in ids], steps


def _look(model: Any, state: Any, taps: Any, tokens: int) -> dict[str, Any]:
    kda = [isinstance(held, caches.KDACache) for held in state.caches]
    pairs = list(zip(state.caches, kda, strict=True))
    memories = [float(held.state.norm()) if own else 0.0 for held, own in pairs]
    rows = [0 if own else tokens for own in kda]
    return {
        "rows": sum(rows),
        "memory": memories,
        "cached": rows,
        "depth": _depth(model, taps),
        "experts": [_chosen(model, taps, i) for i in _SPARSE],
    }


def _depth(model: Any, taps: Any) -> list[list[float]]:
    """Eq. 8-9: the weights of each layer's first mix over its sources, then zeros."""
    text = model.config.text
    sums = [taps[f"layers.{i}.out_prefix"] for i in range(_LAYERS)]
    flat = [x.double().reshape(-1).numpy() for x in (taps["embed_tokens"], *sums)]
    stored = {n: x for n, x in model.state_dict().items() if "attention_res" in n}
    depth, out = attn_res.start(flat[0]), []
    for i in range(_LAYERS):
        sources = attn_res.sources(depth)
        prefix = f"language_model.model.layers.{i}."
        own = {n.removeprefix(prefix): x.double().numpy() for n, x in stored.items()}
        q = attn_res.query(own, "self_attention_res")
        p = ops.softmax(attn_res.scores(q, sources, text.rms_norm_eps))
        out.append([*p.tolist(), *[0.0] * (_SOURCES - len(p))])
        depth = replace(depth, partial=flat[i + 1])
        depth = attn_res.finish_layer(depth, text.attn_res_block_size)
    return out


def _chosen(model: Any, taps: Any, layer: int) -> list[int]:
    index = taps[f"layers.{layer}.block_sparse_moe.index"].reshape(-1).tolist()
    return [int(e in index) for e in range(model.config.text.num_experts)]


def traced(token):  # type: ignore[no-untyped-def]
    """The tiny model after so many tokens of a text: its states and its choices."""
    return record("Return a new list of the items")[1][token - 1]


TRACE = Widget(
    name="trace",
    title="Inside the tiny model",
    says=f"A real model of nine layers reads “{TEXT}”, one token at a time.",
    controls=(
        Control(
            name="token",
            value=4,
            label="tokens read",
            kind="size",
            low=1,
            high=7,
            step=1,
        ),
    ),
    graphs={},
    python=traced,
    table=True,
    extra={
        "tokens": ["Return", " a", " new", " list", " of", " the", " items"],
        "layers": [
            f"layer {i + 1}, {'MLA' if i in (3, 7, 8) else 'KDA'}"
            for i in range(_LAYERS)
        ],
        "sparse": [f"layer {i + 1}" for i in _SPARSE],
        "sources": ["embedding", *(f"source {i}" for i in range(2, _SOURCES + 1))],
    },
    names={
        "rows": "cache rows in all MLA layers",
        "memory": "size of each KDA memory",
        "cached": "cache rows of each MLA layer",
        "depth": "depth weights, layer by source",
        "experts": "experts chosen, sparse layer by expert",
    },
)

WIDGETS = (TRACE,)
