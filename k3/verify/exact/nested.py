"""Arguments of one operation: tensors in lists, tuples and mappings.

PyTorch's own trees also know registered containers; no ATen call has one, and looking
for them costs more than the arithmetic of a small model.
"""

from collections.abc import Callable
from typing import Any


def mapped(function: Callable[[Any], Any], x: Any) -> Any:
    """The same nesting with every leaf replaced."""
    kind = type(x)
    if kind is list:
        return [mapped(function, part) for part in x]
    if kind is tuple:
        return tuple([mapped(function, part) for part in x])
    if kind is dict:
        return {key: mapped(function, part) for key, part in x.items()}
    if isinstance(x, list | tuple):
        # Sizes, and the named tuples that some operations return.
        parts = [mapped(function, part) for part in x]
        return kind(*parts) if hasattr(x, "_fields") else kind(parts)
    return function(x)


def leaves(x: Any) -> list[Any]:
    """Every leaf, in order."""
    found: list[Any] = []
    _collect(x, found)
    return found


def _collect(x: Any, found: list[Any]) -> None:
    kind = type(x)
    if kind is dict:
        x = x.values()
    elif not isinstance(x, list | tuple):
        found.append(x)
        return
    for part in x:
        _collect(part, found)
