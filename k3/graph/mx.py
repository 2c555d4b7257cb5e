"""MXFP4 as a graph: the scale byte of a group, its codes and the decoded values.

A byte and a code are counts of the limits that a magnitude passes. Tables: scales [B+1]
of the bytes 0, 1, ..., levels [L+1] of the codes 0..7, odd [L] the parity of each code
but the last, by which a tie goes to the even side.
"""

from typing import Literal

from k3.graph import primitives as p
from k3.graph.compare import at_least, below, entry, magnitude, peak, same
from k3.graph.term import Term, let, spread

Rule = Literal["floor", "ceil"]


def scale_byte(amax: Term, scales: Term, rule: Rule) -> Term:
    """How many bytes pass: "floor" amax >= 7/2 scale(b), "ceil" amax > 6 scale(b - 1).

    Both are the rules of spec.mx.scale_code: 1.75 2^k rounds up to the next power, and
    6 is the largest element.
    """
    limits = (
        6 * p.cut(scales, 0, "B") if rule == "ceil" else 3.5 * p.cut(scales, 1, "B")
    )
    level = spread(amax, limits.shape)
    passed = below(limits, level) if rule == "ceil" else at_least(level, limits)
    return let("byte", p.total(passed, 0))


def nearest(size: Term, levels: Term, odd: Term) -> Term:
    """The code of each magnitude [N] in units of the scale, ties to the even code."""
    middle = (p.cut(levels, 0, "L") + p.cut(levels, 1, "L")) / 2
    shape = (*size.shape, "L")
    x, limit = spread(size, shape, 0), spread(let("middle", middle), shape, 1)
    over, reached = below(limit, x), at_least(x, limit)
    return let("code", p.total(over + (reached - over) * spread(odd, shape, 1), 1))


def block(
    x: Term, scales: Term, levels: Term, odd: Term, rule: Rule
) -> dict[str, Term]:
    """MXFP4 of a group x [N]: byte, scale, nibbles and decoded values."""
    byte = scale_byte(let("amax", peak(magnitude(x))), scales, rule)
    scale = let("scale", entry(scales, byte))
    unit = let("unit", x / spread(scale, x.shape))
    code = nearest(magnitude(unit), levels, odd)
    shape = (x.shape[0], levels.shape[0])
    places = spread(p.positions(levels.shape[0]), shape, 1)
    value = p.contract("nl,l->n", same(spread(code, shape, 0), places), levels)
    negative = let("negative", below(x, x - x))
    decoded = (value - 2 * negative * value) * spread(scale, x.shape)
    return {
        "byte": byte,
        "scale": scale,
        "nibble": code + 8 * negative,
        "value": decoded,
    }
