"""What the shipped model keeps and chooses while it reads a text, token by token.

`tools/reader/trace.py` keeps the record of one text in trace.json, for pages without a
server; a served page asks for a text of its own. The record is fresh while the model's
files are those it was made from.
"""

import hashlib
import json
from dataclasses import replace
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from k3.errors import RequestError
from k3.spec import attn_res, ops

TEXT = "Return a new list of the items"
MOST_TOKENS = 48
MOST_CHARACTERS = 400
FILE = "trace.json"
REBUILD = "python tools/reader/trace.py"
Step = dict[str, Any]


@cache
def kept() -> dict[str, Any]:
    """The record of `TEXT` in the package, with the digest of the model it is of."""
    file = resources.files("k3.reader") / FILE
    return dict(json.loads(file.read_text(encoding="utf-8")))


def fresh() -> bool:
    """Whether the shipped model is still the one that the record is of."""
    return bool(kept()["digest"] == digest() and kept()["text"] == TEXT)


@cache
def digest() -> str:
    """Of the shipped model's files: config, tokenizer and weights."""
    folder, total = resources.files("k3") / "assets" / "tiny", hashlib.sha256()
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.name.endswith((".safetensors", ".model")) or each.name == "config.json":
            total.update(each.name.encode() + each.read_bytes())
    return total.hexdigest()


@lru_cache(maxsize=16)
def record(text: str) -> dict[str, Any]:
    """Tokens, layers, and for each token: states, cache rows, depth weights, experts.

    In float64. Raises: RequestError for no text, and for one that is too long.
    """
    model, tokenizer = _model()
    if len(text) > MOST_CHARACTERS:
        raise _too_long(f"{len(text)} characters")
    ids = tokenizer.encode(text)
    if not ids:
        raise RequestError("a trace needs a text: got nothing; write a word")
    if len(ids) > MOST_TOKENS:
        raise _too_long(f"{len(ids)} tokens")
    text_config = model.config.text
    count, steps = text_config.num_hidden_layers, _steps(model, ids)
    most = max(len(row) for row in steps[-1]["depth"])
    return {
        "text": text,
        "tokens": [tokenizer.decode([token]) for token in ids],
        "layers": ["MLA" if text_config.is_mla(i) else "KDA" for i in range(count)],
        "sparse": [i + 1 for i in range(count) if text_config.is_moe(i)],
        "sources": ["embedding", *(f"source {i}" for i in range(2, most + 1))],
        "steps": [_padded(step, most) for step in steps],
    }


def _too_long(came: str) -> RequestError:
    return RequestError(
        f"a trace takes at most {MOST_TOKENS} tokens and {MOST_CHARACTERS} characters: "
        f"got {came}; shorten the text"
    )


@cache
def _model() -> tuple[Any, Any]:
    import torch

    import k3

    return k3.load("tiny", dtype=torch.float64), k3.tokenizer("tiny")


def _steps(model: Any, ids: list[int]) -> list[Step]:
    import torch

    state, steps = model.init_state(1), []
    for place, token in enumerate(ids):
        taps: dict[str, Any] = {}
        with torch.no_grad():
            _, state = model(torch.tensor([[token]]), state=state, taps=taps)
        steps.append(_look(model, state, taps, place + 1))
    return steps


def _look(model: Any, state: Any, taps: Any, tokens: int) -> Step:
    text = model.config.text
    layers = range(text.num_hidden_layers)
    rows = [tokens if text.is_mla(i) else 0 for i in layers]
    norms = [
        0.0 if text.is_mla(i) else float(state.caches[i].state.norm()) for i in layers
    ]
    return {
        "rows": sum(rows),
        "memory": norms,
        "cached": rows,
        "depth": _depth(model, taps),
        "experts": [_chosen(model, taps, i) for i in layers if text.is_moe(i)],
    }


def _depth(model: Any, taps: Any) -> list[list[float]]:
    """Eq. 8-9: the weights of each layer's first mix over its sources."""
    text = model.config.text
    count = text.num_hidden_layers
    sums = [taps[f"layers.{i}.out_prefix"] for i in range(count)]
    flat = [x.double().reshape(-1).numpy() for x in (taps["embed_tokens"], *sums)]
    stored = {n: x for n, x in model.state_dict().items() if "attention_res" in n}
    depth, out = attn_res.start(flat[0]), []
    for i in range(count):
        prefix = f"language_model.model.layers.{i}."
        own = {n.removeprefix(prefix): x.double().numpy() for n, x in stored.items()}
        q = attn_res.query(own, "self_attention_res")
        scores = attn_res.scores(q, attn_res.sources(depth), text.rms_norm_eps)
        out.append(ops.softmax(scores).tolist())
        depth = replace(depth, partial=flat[i + 1])
        depth = attn_res.finish_layer(depth, text.attn_res_block_size)
    return out


def _padded(step: Step, most: int) -> Step:
    depth = [[*row, *[0.0] * (most - len(row))] for row in step["depth"]]
    return {**step, "depth": depth}


def _chosen(model: Any, taps: Any, layer: int) -> list[int]:
    index = taps[f"layers.{layer}.block_sparse_moe.index"].reshape(-1).tolist()
    return [int(e in index) for e in range(model.config.text.num_experts)]
