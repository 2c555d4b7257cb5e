"""A table of sales and a question about it, through a query tool."""

import sqlite3
import time
import weakref
from collections import Counter
from collections.abc import Callable

from k3.data.tasks import words
from k3.data.tasks.lot import Lot, Split
from k3.envs.harness.task import Ability, Steps, text
from k3.envs.tasks.exact import Exact

DOMAIN = "table"
COLUMNS = ("seller", "town", "item", "year", "amount")
ROWS = 120
MOST_SHOWN = 40
MOST_STEPS = 2_000
"""Thousands of steps of SQLite's machine that one query may take."""
MOST_SECONDS = 10.0
MOST_BYTES = 10_000
"""Of a value, since one step may compare each part of it with each of another."""

Row = tuple[str, str, str, int, int]
Asked = tuple[str, str, str]
"""The question, its right answer, and a query that finds it."""

_READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}


def make(split: Split, index: int) -> Exact:
    """A table of 120 made-up sales and a question that belongs to the split."""
    lot = Lot.of(DOMAIN, split, index)
    while True:
        rows = _rows(lot)
        found = QUESTIONS[index % len(QUESTIONS)](lot, rows)
        if found is not None and lot.keeps(f"table:{found[0]}"):
            break
    question, right, query = found
    table = Table(rows)

    def script() -> Steps:
        said = text((yield "query", {"sql": query}))
        return said.splitlines()[1]

    return Exact(
        goal=(
            f"The table sales has the columns {', '.join(COLUMNS)}. {question} Answer "
            "with the name or the whole number alone."
        ),
        abilities={"query": table.ability},
        accepts=lambda answer: answer == right,
        script=script,
        free=table.close,
    )


class Table:
    """Rows in memory that can be read with SQL and not changed."""

    def __init__(self, rows: list[Row]) -> None:
        self._store = sqlite3.connect(":memory:", check_same_thread=False)
        self._end = weakref.finalize(self, self._store.close)
        self._store.execute(f"create table sales ({', '.join(COLUMNS)})")
        self._store.executemany("insert into sales values (?, ?, ?, ?, ?)", rows)
        self._store.commit()
        self._store.set_authorizer(_only_reads)
        self._store.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)

    @property
    def ability(self) -> Ability:
        """The query tool."""
        return Ability(
            words="Read the table sales with one SELECT of SQL; rows come as lines.",
            properties={"sql": {"type": "string"}},
            act=self.query,
        )

    def query(self, sql: str) -> str:
        """Rows as lines of words under the names of the columns, or a sentence."""
        left, end = [MOST_STEPS], time.monotonic() + MOST_SECONDS

        def tick() -> int:
            left[0] -= 1
            return int(left[0] < 0 or time.monotonic() > end)

        self._store.set_progress_handler(tick, 1000)
        try:
            found = self._store.execute(sql)
            rows = found.fetchmany(MOST_SHOWN + 1)
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as fault:
            return f"Error: {fault}; send one SELECT over {', '.join(COLUMNS)}."
        lines = [" | ".join(column[0] for column in found.description or ())]
        lines += [" | ".join(map(str, row)) for row in rows[:MOST_SHOWN]]
        if len(rows) > MOST_SHOWN:
            lines.append(f"[only the first {MOST_SHOWN} rows are shown]")
        return "\n".join(lines)

    def close(self) -> None:
        """Drop the rows."""
        self._end()


def _only_reads(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY


def _rows(lot: Lot) -> list[Row]:
    rng = lot.rng
    found = words.several(rng, 15)
    sellers, towns, items = found[:6], found[6:10], found[10:]
    return [
        (
            rng.choice(sellers),
            rng.choice(towns),
            rng.choice(items),
            rng.randint(2001, 2009),
            rng.randint(1, 999),
        )
        for _ in range(ROWS)
    ]


def _total(lot: Lot, rows: list[Row]) -> Asked | None:
    town, year = lot.rng.choice(rows)[1], lot.rng.randint(2002, 2008)
    right = sum(row[4] for row in rows if row[1] == town and row[3] >= year)
    return (
        f"What is the sum of the amounts in the town {town} from {year} on?",
        str(right),
        f"select coalesce(sum(amount), 0) from sales where town = '{town}' "
        f"and year >= {year}",
    )


def _best(lot: Lot, rows: list[Row]) -> Asked | None:
    """None where two sellers share the first place."""
    item = lot.rng.choice(rows)[2]
    totals: Counter[str] = Counter()
    for row in rows:
        if row[2] == item:
            totals[row[0]] += row[4]
    first = totals.most_common(2)
    if len(first) < 2 or first[0][1] == first[1][1]:
        return None
    return (
        f"Which seller has the largest sum of amounts with the item {item}?",
        first[0][0],
        f"select seller from sales where item = '{item}' group by seller "
        "order by sum(amount) desc limit 1",
    )


def _kinds(lot: Lot, rows: list[Row]) -> Asked | None:
    seller = lot.rng.choice(rows)[0]
    right = len({row[1:3] for row in rows if row[0] == seller})
    return (
        f"In how many different pairs of town and item did {seller} sell?",
        str(right),
        f"select count(distinct town || ' ' || item) from sales "
        f"where seller = '{seller}'",
    )


def _between(lot: Lot, rows: list[Row]) -> Asked | None:
    one, other = lot.rng.sample(sorted({row[1] for row in rows}), 2)
    sums = {t: sum(row[4] for row in rows if row[1] == t) for t in (one, other)}
    return (
        f"By how much is the sum of the amounts in {one} above that in {other}? It is "
        "negative where it is below.",
        str(sums[one] - sums[other]),
        f"select sum(case town when '{one}' then amount when '{other}' "
        "then -amount else 0 end) from sales",
    )


QUESTIONS: tuple[Callable[[Lot, list[Row]], Asked | None], ...] = (
    _total,
    _best,
    _kinds,
    _between,
)
