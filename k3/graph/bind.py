"""The sizes of a graph's dimensions, found from the shapes of its inputs."""

from collections.abc import Mapping, Sequence

from k3.errors import ShapeError
from k3.graph.dims import Sizes, show_shape, solve, value
from k3.graph.term import Block, Term


def bind(
    block: Block, shapes: Mapping[str, Sequence[int]], given: Sizes
) -> dict[str, int]:
    """Sizes of all dimensions; ShapeError if an input is missing or does not fit."""
    inputs = block.inputs
    missing = [name for name in inputs if name not in shapes]
    if missing:
        raise ShapeError(
            f"{block.name} needs every input: missing {', '.join(missing)}; it reads "
            f"{', '.join(inputs)}"
        )
    sizes = dict(given)
    _solve(inputs, shapes, sizes)
    for name, node in inputs.items():
        _check(name, node, shapes[name], sizes)
    unknown = [dim for dim in block.dims if dim not in sizes]
    if unknown:
        raise ShapeError(
            f"{block.name} needs a size for {', '.join(unknown)}: no input shows it; "
            f"give it in sizes"
        )
    return sizes


def _solve(
    inputs: Mapping[str, Term],
    shapes: Mapping[str, Sequence[int]],
    sizes: dict[str, int],
) -> None:
    """Single names first, then sums and products with one unknown, until no more."""
    pairs = [
        (dim, length)
        for name, node in inputs.items()
        for dim, length in zip(node.shape, shapes[name], strict=False)
    ]
    for dim, length in pairs:
        if isinstance(dim, str):
            sizes.setdefault(dim, length)
    while any(solve(dim, length, sizes) for dim, length in pairs):
        pass


def _check(name: str, node: Term, came: Sequence[int], sizes: Sizes) -> None:
    try:
        wanted = tuple(value(dim, sizes) for dim in node.shape)
    except ShapeError:
        wanted = ()
    if wanted == tuple(came) and len(came) == len(node.shape):
        return
    raise ShapeError(
        f"input {name} must have shape {show_shape(node.shape)}: got {list(came)} with "
        f"{', '.join(f'{n}={s}' for n, s in sizes.items()) or 'no sizes'}; see "
        f"{node.line}"
    )
