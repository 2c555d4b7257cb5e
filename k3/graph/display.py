"""What `k3 graph NAME` prints and runs."""

from collections.abc import Callable
from typing import Any

from k3.errors import RequestError
from k3.graph import render
from k3.graph.dims import Sizes
from k3.graph.draw import draw
from k3.graph.draw import sizes as sizes_of
from k3.graph.evaluate import evaluate
from k3.graph.steps import catalogue
from k3.graph.term import Block

FORMS: dict[str, Callable[[Block], str]] = {
    "text": render.text,
    "dot": render.dot,
    "json": render.json,
    "latex": render.latex,
}


def get(name: str) -> Block:
    """The packed step of a name; RequestError lists the names there are."""
    if name not in catalogue:
        raise RequestError(
            f"a graph must be one of {', '.join(catalogue)}: got {name!r}; choose one"
        )
    return catalogue[name]()


def show(name: str, form: str = "text") -> str:
    """A packed step as text, dot, json or latex."""
    if form not in FORMS:
        raise RequestError(
            f"a form must be one of {', '.join(FORMS)}: got {form!r}; choose one"
        )
    return FORMS[form](get(name))


def run(name: str, sizes: Sizes | None = None, seed: int = 0) -> dict[str, Any]:
    """A packed step evaluated in float64 on random inputs of the given sizes.

    Returns {"name", "sizes", "inputs", "outputs"}, arrays as nested lists. Sizes that
    are not given are small.
    """
    block = get(name)
    unknown = sorted(set(sizes or {}) - set(block.dims))
    if unknown:
        raise RequestError(
            f"{name} has no dimension {', '.join(unknown)}; it has "
            f"{', '.join(block.dims)}"
        )
    chosen = sizes_of(block, sizes)
    env = draw(block, chosen, seed)
    outputs = evaluate(block, env, chosen)
    return {
        "name": name,
        "sizes": chosen,
        "inputs": {key: array.tolist() for key, array in env.items()},
        "outputs": {key: array.tolist() for key, array in outputs.items()},
    }
