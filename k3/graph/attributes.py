"""What each primitive carries besides its operands, and how it is written as text."""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from k3.graph.dims import Compound, Dim, parse, show

# Kinds: axis (int), axes (ints), dim, dims, number (exact), word, dim? (may be absent).
ATTRIBUTES: dict[str, dict[str, str]] = {
    "input": {"name": "word", "shape": "dims", "dtype": "word", "domain": "dim?"},
    "constant": {"value": "number", "dtype": "word"},
    "size": {"dim": "dim"},
    "positions": {"dim": "dim"},
    "bilinear": {"out": "dim", "table": "dim"},
    "scale": {"factor": "number"},
    "gelu": {"kind": "word"},
    "unit_rms": {"eps": "number"},
    "rms_norm": {"eps": "number"},
    "l2_norm": {"eps": "number"},
    "contract": {"axes": "word"},
    "permute": {"order": "axes"},
    "reshape": {"shape": "dims"},
    "broadcast": {"shape": "dims", "axes": "axes"},
    "concat": {"axis": "axis"},
    "slice": {"axis": "axis", "start": "dim", "size": "dim"},
    "stack": {"axis": "axis"},
    "flip": {"axis": "axis"},
    "sum": {"axes": "axes"},
    "mean": {"axes": "axes"},
    "gather": {"axis": "axis"},
    "topk": {"k": "dim"},
    "within": {"domain": "dim"},
}

_WRITE: dict[str, Callable[[Any], Any]] = {
    "axis": int,
    "axes": list,
    "dim": show,
    "dims": lambda dims: [show(d) for d in dims],
    "number": str,
    "word": str,
    "dim?": lambda dim: None if dim is None else show(dim),
}
_READ: dict[str, Callable[[Any], Any]] = {
    "axis": int,
    "axes": tuple,
    "dim": parse,
    "dims": lambda texts: tuple(parse(t) for t in texts),
    "number": Fraction,
    "word": str,
    "dim?": lambda text: None if text is None else parse(text),
}


def write(op: str, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as plain JSON values."""
    kinds = ATTRIBUTES.get(op, {})
    assert attrs.keys() == kinds.keys(), (op, attrs)
    return {name: _WRITE[kind](attrs[name]) for name, kind in kinds.items()}


def read(op: str, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes from plain JSON values; KeyError or ValueError if they are not."""
    kinds = ATTRIBUTES.get(op, {})
    if attrs.keys() != kinds.keys():
        raise ValueError(f"{op} takes {sorted(kinds)}: got {sorted(attrs)}")
    return {name: _READ[kind](attrs[name]) for name, kind in kinds.items()}


def dims(op: str, attrs: Mapping[str, Any]) -> Iterator[Dim]:
    """The dimensions among the attributes."""
    for name, kind in ATTRIBUTES.get(op, {}).items():
        found = attrs[name]
        if kind == "dims":
            yield from found
        elif kind in ("dim", "dim?") and isinstance(found, int | str | Compound):
            yield found
