"""Counterexamples: small sizes and inputs at which a graph is not its reference.

Exact on fractions where both sides are rational, else in float64. Finding none proves
nothing; finding one settles the matter.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from k3.errors import ShapeError
from k3.graph.dims import Sizes, value
from k3.graph.evaluate import evaluate
from k3.graph.references import Reference
from k3.graph.term import Block

Array = Any
TOLERANCE = 1e-8
SEEDS = range(60)
# What real inputs are drawn from in turn, and what it is divided by. Ties need few.
_STYLES: tuple[tuple[Any, int], ...] = (
    ((1, 2, -1, -2, 3), 1),
    ((1, 1, 1, 2), 1),
    (range(-8, 9), 4),
    ((1, 1, -1), 1),
)


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Where two programs differ: sizes, inputs, an entry of an output, both values."""

    sizes: Sizes
    inputs: Mapping[str, Array]
    output: str
    index: tuple[int, ...]
    graph: Any
    reference: Any
    exact: bool
    seed: int

    def __str__(self) -> str:
        sizes = " ".join(f"{n}={s}" for n, s in self.sizes.items())
        inputs = "\n".join(
            f"  {name} = {_show(array)}" for name, array in self.inputs.items()
        )
        entry = f"[{', '.join(map(str, self.index))}]" if self.index else ""
        how = "exactly" if self.exact else "in float64"
        return (
            f"sizes {sizes}\n{inputs}\n{self.output}{entry}: graph "
            f"{_show(self.graph)}, reference {_show(self.reference)} ({how})"
        )


def refute(
    graph: Block,
    reference: Reference | Block,
    sizes: Iterable[Sizes] | None = None,
    seeds: Iterable[int] = SEEDS,
    *,
    inputs: Block | None = None,
) -> Counterexample | None:
    """The first counterexample, smallest sizes first, or None.

    `inputs` is a block whose inputs are drawn too, for a reference that reads more
    than the graph does. Without `sizes`, they grow from 1 to 3 with the seeds.
    """
    drawn = [graph, *([inputs] if inputs else [])]
    drawn += [reference] if isinstance(reference, Block) else []
    given = None if sizes is None else list(sizes)
    for n, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        at = grown(drawn, n, rng) if given is None else given[n % len(given)]
        env = simple(drawn, at, n, rng)
        with np.errstate(all="ignore"):
            found = _compare(graph, reference, env, at, seed)
        if found is not None:
            return found
    return None


def grown(blocks: Iterable[Block], n: int, rng: Any) -> dict[str, int]:
    """Sizes for try n: all 1 at first, then between 1 and 3."""
    top = min(3, 1 + n // 6)
    names = dict.fromkeys(name for block in blocks for name in block.dims)
    sizes = {name: int(rng.integers(1, top + 1)) for name in names}
    if "A" in sizes and "E" in sizes:
        sizes["E"] = max(sizes["A"], sizes["E"])
    return sizes


def simple(blocks: Iterable[Block], sizes: Sizes, n: int, rng: Any) -> dict[str, Array]:
    """Inputs for try n as exact numbers: small integers and quarters in turn."""
    env: dict[str, Array] = {}
    for block in blocks:
        for name, node in block.inputs.items():
            shape = tuple(value(d, sizes) for d in node.shape)
            if name in env:
                continue
            if node.dtype == "real":
                choices, denominator = _STYLES[n % len(_STYLES)]
                number = rng.choice(choices, size=shape)
                env[name] = _fractions(number, denominator)
            else:
                domain = node.type.domain
                bound = 2 if domain is None else value(domain, sizes)
                env[name] = np.asarray(rng.integers(0, bound, size=shape))
    return env


def _fractions(whole: Array, denominator: int) -> Array:
    out = np.empty(np.shape(whole), dtype=object)
    for at in np.ndindex(out.shape):
        out[at] = Fraction(int(np.asarray(whole)[at]), denominator)
    return out


def _floats(env: Mapping[str, Array]) -> dict[str, Array]:
    return {n: a.astype(float) if a.dtype == object else a for n, a in env.items()}


def _outputs(side: Reference | Block, env: Mapping[str, Array], at: Sizes) -> Any:
    return evaluate(side, env, at) if isinstance(side, Block) else side(env, at)


def _compare(
    graph: Block,
    reference: Reference | Block,
    env: Mapping[str, Array],
    at: Sizes,
    seed: int,
) -> Counterexample | None:
    """Both sides on one input: exactly if they are rational there, else in float64."""
    for exact, inputs in ((True, env), (False, _floats(env))):
        try:
            ours = _outputs(graph, inputs, at)
            theirs = _outputs(reference, inputs, at)
        except ArithmeticError:
            continue
        # The drawn integers ask for a row that is not there.
        except (ShapeError, IndexError, AssertionError):
            return None
        spot = _difference(ours, theirs)
        if spot is None:
            return None
        name, index = spot
        values = np.asarray(ours[name])[index], np.asarray(theirs[name])[index]
        shown = {n: inputs[n] for n in inputs}
        return Counterexample(dict(at), shown, name, index, *values, exact, seed)
    return None


def _difference(ours: Any, theirs: Any) -> tuple[str, tuple[int, ...]] | None:
    """The output and entry that differ most, beyond rounding; None if none does."""
    worst, spot = 1.0, None
    for name, mine in ours.items():
        one, other = np.asarray(mine), np.asarray(theirs[name])
        assert one.shape == other.shape, (name, one.shape, other.shape)
        rational = one.dtype == object
        gap = abs(one - other).astype(float)
        size = 1 + abs(one).astype(float) + abs(other).astype(float)
        excess = np.where(gap > 0, np.inf, 0) if rational else gap / size / TOLERANCE
        # A difference that overflows is one, too.
        excess = np.where(np.isnan(excess), np.inf, excess)
        if excess.size and excess.max() > worst:
            worst = float(excess.max())
            at = np.unravel_index(int(excess.argmax()), excess.shape)
            spot = name, tuple(int(i) for i in at)
    return spot


def _show(array: Array) -> str:
    """A number or an array as text, fractions as 3/4, floats with eight digits."""
    plain = np.asarray(array)
    if plain.shape:
        return "[" + ", ".join(_show(row) for row in plain) + "]"
    entry = plain[()]
    return f"{entry:.8g}" if isinstance(entry, float) else str(entry)
