"""The one place where the layouts of what runs and what is true meet.

Kernels and DecodeState hold KDA's memory as [S H V K]; the paper writes S as [K V] for
one sequence and head. Parameters of a module are stacked over experts and carry the
prefix `language_model.`; the spec reads the checkpoint's names, one expert at a time.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from k3.spec import ops
from k3.spec.ops import Array


def paper_state(state: Array, sequence: int, head: int) -> Array:
    """One head's memory of one sequence as the paper writes it: [S H V K] to [K V]."""
    return state[sequence, head].T


def running_state(heads: Sequence[Array]) -> Array:
    """One sequence's memories [K V], a head each, as kernels hold them: [H V K]."""
    return ops.stack([S.T for S in heads])


def checkpoint_names(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by the checkpoint's names, without the text's prefix."""
    out: dict[str, Any] = {}
    for name, p in parameters.items():
        short = name.removeprefix("language_model.")
        stem, _, last = short.rpartition(".")
        if stem.endswith("experts") and last in ("w1", "w2", "w3"):
            out |= {f"{stem}.{e}.{last}.weight": p[e] for e in range(len(p))}
        else:
            out[short] = p
    return out


def by_sequence(lens: Sequence[int]) -> list[slice]:
    """Where each packed sequence lies among the tokens."""
    ends = [sum(lens[: i + 1]) for i in range(len(lens))]
    return [slice(end - n, end) for end, n in zip(ends, lens, strict=True)]
