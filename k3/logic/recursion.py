"""Writing recursive definitions as Python functions. Untrusted."""

from collections.abc import Callable, Sequence

from k3.logic import constants
from k3.logic.sorts import Sort
from k3.logic.terms import Symbol, Term


def recursive(
    name: str,
    params: Sequence[Term],
    result: Sort,
    base: Callable[..., Term],
    step: Callable[..., Term],
    *,
    on: int = -1,
) -> Symbol:
    """Structural recursion on parameter number `on`, the last by default.

    `base(*others)` is the value at nil or 0; `step(head, tail, rec, *others)`, or
    `step(n, rec, *others)` for n+1, may use `rec(*others)` for the smaller value.
    """
    on %= len(params)
    x = params[on]
    others = [p for p in params if p is not x]
    symbol = Symbol(name, tuple(p.sort for p in params), result)
    smaller = constants.recursion_variables(x)

    def rec(*values: Term) -> Term:
        return symbol(*values[:on], smaller[-1], *values[on:])

    at_zero, at_next = base(*others), step(*smaller, rec, *others)
    return constants.define_recursive(symbol, params, on, at_zero, at_next)
