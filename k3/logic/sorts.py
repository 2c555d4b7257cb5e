"""Simple types: Bool, Int, Real, lists, pairs, functions and named types."""

from dataclasses import dataclass

from k3.errors import ProofError

ARITY = {"Bool": 0, "Int": 0, "Real": 0, "List": 1, "Pair": 2, "Named": 0}


@dataclass(frozen=True, slots=True)
class Sort:
    """A type; equal structure is equal sort, so naming cannot confuse two sorts."""

    head: str
    args: tuple["Sort", ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        if self.head == "Fun":
            well_formed = len(self.args) >= 2 and not self.name
        else:
            well_formed = ARITY.get(self.head) == len(self.args) and (
                bool(self.name) == (self.head == "Named")
            )
        if not well_formed or not all(type(a) is Sort for a in self.args):
            raise ProofError(f"no such sort: {self.head} of {len(self.args)} arguments")

    @property
    def domain(self) -> tuple["Sort", ...]:
        """Argument sorts of a function sort."""
        return self.args[:-1]

    @property
    def result(self) -> "Sort":
        """Result sort of a function sort."""
        return self.args[-1]

    def __str__(self) -> str:
        if self.head == "Fun":
            return f"({' × '.join(map(str, self.domain))} → {self.result})"
        if self.head == "Pair":
            return f"({self.args[0]} × {self.args[1]})"
        if self.head == "List":
            return f"{self.args[0]}*"
        return {"Bool": "𝔹", "Int": "ℤ", "Real": "ℝ"}.get(self.head, self.name)


BOOL, INT, REAL = Sort("Bool"), Sort("Int"), Sort("Real")


def named(name: str) -> Sort:
    """An arbitrary non-empty type: what is proved holds for every type."""
    return Sort("Named", (), name)


def list_of(element: Sort) -> Sort:
    """Finite lists over one sort."""
    return Sort("List", (element,))


def pair_of(first: Sort, second: Sort) -> Sort:
    """Pairs of two sorts."""
    return Sort("Pair", (first, second))


def fun(*sorts: Sort) -> Sort:
    """Functions: the last sort is the result."""
    return Sort("Fun", sorts)
