"""Values of finite models: random ones of a sort, functions as tables. Untrusted."""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from k3.logic.sorts import Sort

NAMED_SIZE = 3
REALS = [Fraction(n, d) for n in range(-4, 5) for d in (1, 2)]


class Table:
    """A function that is made up while it is asked."""

    def __init__(self, sort: Sort, rng: random.Random, size: int) -> None:
        self.sort, self.seed, self.size = sort, rng.random(), size
        self.known: dict[tuple[Any, ...], Any] = {}

    def __call__(self, *args: Any) -> Any:
        """The value, made up when first asked for."""
        if args not in self.known:
            rng = random.Random(repr((self.seed, args)))
            self.known[args] = value(self.sort.result, rng, self.size)
        return self.known[args]

    def __str__(self) -> str:
        entries = (
            f"{', '.join(map(plain, k))} ↦ {plain(v)}" for k, v in self.known.items()
        )
        return "{" + "; ".join(entries) + "}"


class Given(Table):
    """A function that is fixed; what it was asked for is printed like a table."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function: Callable[..., Any] = function
        self.known: dict[tuple[Any, ...], Any] = {}

    def __call__(self, *args: Any) -> Any:
        """The value, kept for printing."""
        found = self.known[args] = self.function(*args)
        return found


def value(sort: Sort, rng: random.Random, size: int) -> Any:
    """A random value of a sort."""
    if sort.head == "Int":
        return rng.randrange(0, size + 1)
    if sort.head == "Real":
        return rng.choice(REALS)
    if sort.head == "Bool":
        return rng.random() < 0.5
    if sort.head == "Named":
        return f"{sort.name}{rng.randrange(NAMED_SIZE)}"
    if sort.head == "List":
        return tuple(
            value(sort.args[0], rng, size) for _ in range(rng.randint(0, size))
        )
    if sort.head == "Pair":
        return value(sort.args[0], rng, size), value(sort.args[1], rng, size)
    return Table(sort, rng, size)


def plain(x: Any) -> str:
    """A value as text."""
    if isinstance(x, tuple):
        return "[" + ", ".join(map(plain, x)) + "]"
    return str(x)
