"""Terms of the second checker: rows of a table, compared by number.

Written apart from the kernel, and shares no code with it.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from k3.errors import ProofError

Sort = tuple[Any, ...]
Row = tuple[str, Any, tuple[int, ...]]
Visit = Callable[[int, int], int | None]
Done = dict[tuple[int, int], int]
B, Z, R = ("Bool",), ("Int",), ("Real",)
SIZES = {"Bool": 1, "Int": 1, "Real": 1, "Named": 2, "List": 2, "Pair": 3}


def demand(ok: bool, why: str) -> None:
    """Reject the log unless ok."""
    if not ok:
        raise ProofError(f"the proof log is rejected: {why}")


def frozen(x: Any) -> Any:
    """Lists of a log as tuples."""
    return tuple(map(frozen, x)) if isinstance(x, list) else x


def sort_of_log(x: Any) -> Sort:
    """A sort read from the log."""
    demand(isinstance(x, list) and bool(x) and isinstance(x[0], str), f"no sort: {x}")
    if x[0] == "Fun":
        demand(len(x) >= 3, "a function has an argument and a result")
    else:
        demand(SIZES.get(x[0]) == len(x), f"no sort: {x}")
    if x[0] == "Named":
        demand(isinstance(x[1], str), "a type has a name")
        return ("Named", x[1])
    return (x[0], *map(sort_of_log, x[1:]))


class Terms:
    """The table; every row is typed when it is entered."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.sorts: list[Sort] = []
        self.frees: list[frozenset[int]] = []
        self.open: list[dict[tuple[int, int], Sort]] = []  # unbound variables
        self.index: dict[Any, int] = {}

    def enter(self, op: str, data: Any, args: Sequence[int], sort: Any = None) -> int:
        """The number of a term, after simplification."""
        xs = tuple(args)
        sorts = [self.sorts[a] for a in xs]
        unbound: dict[tuple[int, int], Sort] = {}
        for a in xs:
            unbound.update(self.open[a])
        if op in ("lam", "forall"):
            outer = {}
            for (level, place), s in unbound.items():
                if level:
                    outer[level - 1, place] = s
                else:
                    demand(place < len(data) and data[place] == s, "a binder's sorts")
            unbound = outer
        result = sort if op in ("free", "bound", "lit", "nil") else None
        result = result or self._type(op, data, sorts)
        if (less := self._simplify(op, xs)) is not None:
            return less
        key = (op, type(data), data, xs, result)
        if key not in self.index:
            new = self.index[key] = len(self.rows)
            self.rows.append((op, data, xs))
            self.sorts.append(result)
            frees = frozenset().union(*(self.frees[a] for a in xs)) if xs else None
            own = frozenset([new]) if op == "free" else frozenset()
            self.frees.append(frees if frees is not None else own)
            self.open.append({data: result} if op == "bound" else unbound)
        return self.index[key]

    def _simplify(self, op: str, xs: tuple[int, ...]) -> int | None:
        if op == "call" and self.rows[xs[0]][0] == "lam":
            return self.fill(self.rows[xs[0]][2][0], xs[1:])
        if op in ("fst", "snd") and self.rows[xs[0]][0] == "pair":
            return self.rows[xs[0]][2][0 if op == "fst" else 1]
        if op == "pair":
            (a, _, p), (b, _, q) = self.rows[xs[0]], self.rows[xs[1]]
            if (a, b) == ("fst", "snd") and p == q:
                return p[0]
        return None

    def _type(self, op: str, data: Any, s: list[Sort]) -> Sort:
        if op in ("lam", "forall"):
            demand(len(s) == 1 and bool(data), f"{op} has one body")
            demand(op == "lam" or s[0] == B, "a quantifier is over a statement")
            return ("Fun", *data, s[0]) if op == "lam" else B
        if op == "const":
            demand(list(data[1]) == s, f"{data[0]} has other arguments")
            return tuple(data[2])
        demand(data is None, f"{op} has no data")
        if op in ("and", "or"):
            demand(bool(s) and set(s) == {B}, f"{op} joins statements")
            return B
        if op == "call":
            whole = bool(s) and s[0][0] == "Fun" and list(s[0][1:-1]) == s[1:]
            demand(whole, "a function has other arguments")
            return tuple(s[0][-1])
        demand(op in SHAPES, f"no operation {op}")
        count, fits, out = SHAPES[op]
        demand(len(s) == count and fits(*s), f"{op} does not take these sorts")
        return tuple(out(*s))

    # ------------------------------------------------------------ substitution

    def rebuild(self, t: int, visit: Visit, above: int, done: Done) -> int:
        """Replace what `visit(term, binders above)` answers."""
        if (t, above) not in done:
            new = visit(t, above)
            op, data, xs = self.rows[t]
            if new is None and xs:
                below = above + 1 if op in ("lam", "forall") else above
                parts = [self.rebuild(x, visit, below, done) for x in xs]
                new = self.enter(op, data, parts)
            done[t, above] = t if new is None else new
        return done[t, above]

    def lift(self, t: int, by: int) -> int:
        """Move a term under more binders."""
        if not by or not self.open[t]:
            return t
        return self.rebuild(t, lambda t, k: self._lifted(t, k, by), 0, {})

    def _lifted(self, t: int, above: int, by: int) -> int | None:
        op, data, _ = self.rows[t]
        if op != "bound" or data[0] < above:
            return None
        return self.enter("bound", (data[0] + by, data[1]), (), self.sorts[t])

    def fill(self, body: int, values: Sequence[int]) -> int:
        """A binder's body at values."""
        return self.rebuild(body, lambda t, k: self._filled(t, k, values), 0, {})

    def _filled(self, t: int, above: int, values: Sequence[int]) -> int | None:
        op, data, _ = self.rows[t]
        if op != "bound" or data[0] < above:
            return None
        if data[0] > above:
            return self.enter("bound", (data[0] - 1, data[1]), (), self.sorts[t])
        demand(data[1] < len(values), "too few values")
        return self.lift(values[data[1]], above)

    def replace(self, t: int, new: dict[int, int]) -> int:
        """Free variables replaced by terms without unbound variables."""
        for v, x in new.items():
            fits = self.sorts[v] == self.sorts[x] and not self.open[x]
            demand(self.rows[v][0] == "free" and fits, "a substitution")
        return self.rebuild(t, lambda t, _: new.get(t), 0, {})

    def bind(self, op: str, variables: Sequence[int], body: int) -> int:
        """A quantifier or function over free variables."""
        place = {v: i for i, v in enumerate(variables)}
        distinct = bool(place) and len(place) == len(variables)
        names = all(self.rows[v][0] == "free" for v in variables)
        demand(distinct and names and not self.open[body], "a binder")
        inside = self.rebuild(body, lambda t, k: self._placed(t, k, place), 0, {})
        return self.enter(op, tuple(self.sorts[v] for v in variables), [inside])

    def _placed(self, t: int, above: int, place: dict[int, int]) -> int | None:
        if t not in place:
            return None
        return self.enter("bound", (above, place[t]), (), self.sorts[t])

    def whole(self, n: int) -> int:
        """An integer literal."""
        return self.enter("lit", Fraction(n), (), Z)

    def unused(self, sort: Sort, *ts: int) -> int:
        """A free variable that occurs in none of these terms."""
        taken = {self.rows[v][1] for t in ts for v in self.frees[t]}
        name = "_"
        while name in taken:
            name += "_"
        return self.enter("free", name, (), sort)


def _number(*s: Sort) -> bool:
    return s[0] in (Z, R) and len(set(s)) == 1


SHAPES: dict[str, tuple[int, Callable[..., bool], Callable[..., Sort]]] = {
    "=": (2, lambda a, b: a == b, lambda a, b: B),
    "<=": (2, _number, lambda a, b: B),
    "<": (2, _number, lambda a, b: B),
    "+": (2, _number, lambda a, b: a),
    "-": (2, _number, lambda a, b: a),
    "*": (2, _number, lambda a, b: a),
    "/": (2, lambda a, b: a == b == R, lambda a, b: R),
    "not": (1, lambda a: a == B, lambda a: B),
    "=>": (2, lambda a, b: a == b == B, lambda a, b: B),
    "ite": (3, lambda c, a, b: c == B and a == b, lambda c, a, b: a),
    "cons": (2, lambda h, t: t == ("List", h), lambda h, t: t),
    "hd": (1, lambda t: t[0] == "List", lambda t: t[1]),
    "tl": (1, lambda t: t[0] == "List", lambda t: t),
    "pair": (2, lambda a, b: True, lambda a, b: ("Pair", a, b)),
    "fst": (1, lambda p: p[0] == "Pair", lambda p: p[1]),
    "snd": (1, lambda p: p[0] == "Pair", lambda p: p[2]),
    "to_real": (1, lambda a: a == Z, lambda a: R),
}


def literal(data: Any, sort: Sort) -> Any:
    """The value of a literal, exact and of its sort."""
    if sort == B:
        demand(isinstance(data, bool), "a truth value")
        return data
    demand(isinstance(data, str) and sort in (Z, R), "a number is written as text")
    value = Fraction(data)
    demand(sort == R or value.denominator == 1, f"{value} is not an integer")
    return value
