"""Numbers that the report states, with their conditions: data, and never checked here.

`k3/paper/reported.json` has tables by name; a chapter shows one by a fenced block
`reported` with `table = "NAME"`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from k3.errors import ConfigError

STATUS = "reported only"
SIGN = "○"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Values of one quantity, under which condition, and who says so."""

    what: str
    values: tuple[str, ...]
    condition: str
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table of the report; a value stands in each of its columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@cache
def tables() -> Mapping[str, Table]:
    """Every table by name. Raises: ConfigError."""
    file = resources.files("k3") / "paper" / "reported.json"
    return read(json.loads(file.read_text(encoding="utf-8")))


def read(found: Mapping[str, Any]) -> dict[str, Table]:
    """Tables from plain values. Raises: ConfigError for a value without condition."""
    made = {}
    for name, table in found.items():
        rows = tuple(
            Row(**{**row, "values": tuple(row["values"])}) for row in table["rows"]
        )
        columns = tuple(table["columns"])
        for row in rows:
            told = all((row.what, row.condition, row.source, *row.values))
            if not told or len(row.values) != len(columns):
                raise ConfigError(
                    f"reported table {name}: {row.what or 'a row'} must have a value "
                    "for each column, a condition and a source; write them"
                )
        made[name] = Table(title=table["title"], columns=columns, rows=rows)
    return made


def markdown(name: str) -> str:
    """A table as Markdown, marked as reported only. Raises: ConfigError."""
    if name not in tables():
        raise ConfigError(
            f"a reported table is one of {', '.join(tables())}: got {name!r}; choose "
            "one"
        )
    table = tables()[name]
    head = ("what", *table.columns, "condition", "said by")
    lines = [head, ("---",) * len(head)]
    lines += [(row.what, *row.values, row.condition, row.source) for row in table.rows]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"### {table.title}\n\n{SIGN} *{STATUS}*\n\n{body}\n"
