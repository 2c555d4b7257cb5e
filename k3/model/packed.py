"""A packed state: a dict of tensors, a header of integers and the tensors of layers."""

import re

import torch
from torch import Tensor

from k3 import errors
from k3.model.cache import KDACache, MLACache
from k3.model.inputs import Inputs

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


def header(packed: object) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    """Return keep_inputs, weight version, lengths, and how many inputs each kept."""
    if not isinstance(packed, dict):
        raise _refuse("is a dict of tensors", f"a {type(packed).__name__}")
    for key, x in packed.items():
        if not isinstance(key, str) or not isinstance(x, Tensor):
            kind = type(x).__name__
            raise _refuse("is a dict of names and tensors", f"{key!r}: a {kind}")
    head = packed.get("header")
    whole = head is not None and head.dtype == torch.int64 and head.dim() == 1
    if head is None or not whole or len(head) < 2 or len(head) % 2 or head.is_meta:
        raise _refuse("has a header of 2 integers and 2 a sequence", sorted(packed)[:4])
    keep, version, *rest = head.tolist()
    lens, kept = tuple(rest[: len(rest) // 2]), tuple(rest[len(rest) // 2 :])
    if any(not 0 <= n <= min(keep, x) for n, x in zip(kept, lens, strict=True)):
        raise _refuse(
            "keeps inputs of at most keep_inputs tokens, and of no more than there are",
            f"keep_inputs {keep}, {kept} kept, lengths {lens}",
        )
    return keep, version, lens, kept


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


def check_sizes(
    named: dict[str, Tensor], lens: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    """Refuse tensors of another batch, context or number of kept tokens.

    What the model alone knows, it checks when it gets the state.
    """
    most = max(kept, default=0)
    if most and set(named) == _KDA:
        raise _refuse(f"has the inputs of {most} kept tokens", sorted(named))
    tokens = {name: most for name in named if name.startswith("kept_")}
    if "rows" in named:
        tokens["rows"] = max(lens, default=0)
    for name, x in named.items():
        n = tokens.get(name, x.shape[1] if x.dim() > 1 else -1)
        if x.dim() < 2 or x.shape[:2] != (len(lens), n):
            raise _refuse(f"has {name} of sizes {(len(lens), n)}", tuple(x.shape[:2]))


def cache(
    named: dict[str, Tensor], keep: int, lens: tuple[int, ...], kept: tuple[int, ...]
) -> KDACache | MLACache:
    """Return one layer's cache."""
    if "rows" in named:
        return MLACache(rows=named["rows"], lens=lens)
    made = KDACache(state=named["state"], window=named["window"], keep=keep)
    if "kept_raw" in named:
        made.base = named["base_state"], named["base_window"]
        made.kept = Inputs(*(named[f"kept_{n}"] for n in KEPT))
        made.counts = kept
    return made
