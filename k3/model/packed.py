"""A packed state: a dict of tensors, a header of integers and the tensors of layers."""

import re

import torch
from torch import Tensor

from k3 import errors
from k3.model.cache import Inputs, KDACache, MLACache

KEPT = ("raw", "k", "v", "g", "beta")
_MLA = {"rows"}
_KDA = {"state", "window"}
_REWINDABLE = _KDA | {"base_state", "base_window", *(f"kept_{n}" for n in KEPT)}
# Written as pack writes them: no 00, no digits of other scripts.
_KEY = re.compile(r"layers\.(0|[1-9][0-9]{0,8})\.([a-z_]+)")


def _refuse(rule: str, got: object) -> errors.ShapeError:
    return errors.ShapeError(
        f"a packed state {rule}: got {got}; pass the dict that DecodeState.pack "
        "returned"
    )


def header(packed: object) -> list[int]:
    """Return keep_inputs, kept, weight version, and the lengths."""
    if not isinstance(packed, dict):
        raise _refuse("is a dict of tensors", f"a {type(packed).__name__}")
    for key, x in packed.items():
        if not isinstance(key, str) or not isinstance(x, Tensor):
            kind = type(x).__name__
            raise _refuse("is a dict of names and tensors", f"{key!r}: a {kind}")
    head = packed.get("header")
    whole = head is not None and head.dtype == torch.int64 and head.dim() == 1
    if head is None or not whole or len(head) < 3 or head.is_meta:
        raise _refuse("has a header of at least 3 integers", sorted(packed)[:4])
    keep, kept, version, *lens = head.tolist()
    if not 0 <= kept <= keep or kept > min(lens, default=0):
        raise _refuse(
            "keeps inputs of at most keep_inputs tokens, and of no more than there are",
            f"keep_inputs {keep}, {kept} kept, lengths {lens}",
        )
    return [keep, kept, version, *lens]


def by_layer(packed: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    """Return the tensors of each layer, cloned."""
    layers: dict[int, dict[str, Tensor]] = {}
    for key, x in packed.items():
        if key == "header":
            continue
        found = _KEY.fullmatch(key)
        if found is None:
            raise _refuse("has tensors named layers.N.NAME", key)
        layers.setdefault(int(found[1]), {})[found[2]] = x.clone()
    if sorted(layers) != list(range(len(layers))):
        raise _refuse("has every layer from 0 on", sorted(layers))
    for i, named in layers.items():
        if set(named) not in (_MLA, _KDA, _REWINDABLE):
            raise _refuse("has all tensors of a layer", f"layer {i}: {sorted(named)}")
    return [layers[i] for i in sorted(layers)]


def check_sizes(named: dict[str, Tensor], lens: tuple[int, ...], kept: int) -> None:
    """Refuse tensors of another batch, context or number of kept tokens.

    What the model alone knows, it checks when it gets the state.
    """
    if kept and set(named) == _KDA:
        raise _refuse(f"has the inputs of {kept} kept tokens", sorted(named))
    tokens = {name: kept for name in named if name.startswith("kept_")}
    if "rows" in named:
        tokens["rows"] = max(lens, default=0)
    for name, x in named.items():
        n = tokens.get(name, x.shape[1] if x.dim() > 1 else -1)
        if x.dim() < 2 or x.shape[:2] != (len(lens), n):
            raise _refuse(f"has {name} of sizes {(len(lens), n)}", tuple(x.shape[:2]))


def cache(
    named: dict[str, Tensor], keep: int, lens: tuple[int, ...]
) -> KDACache | MLACache:
    """Return one layer's cache."""
    if "rows" in named:
        return MLACache(rows=named["rows"], lens=lens)
    made = KDACache(state=named["state"], window=named["window"], keep=keep)
    if "kept_raw" in named:
        made.base = named["base_state"], named["base_window"]
        made.kept = Inputs(*(named[f"kept_{n}"] for n in KEPT))
    return made
