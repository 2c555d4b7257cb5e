"""Chapters as data: Markdown prose with claims in fenced TOML blocks."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from itertools import groupby
from typing import Any

from markdown_it import MarkdownIt

from k3.errors import ConfigError
from k3.reader import reported

_KINDS = ("chapter", "claim", "reported")
_LISTS = ("code", "runs", "theorems")


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One row: a passage, and what it is held by. Names are checked by `check`."""

    id: str
    section: str
    text: str
    title: str = ""
    page: int = 0
    equation: str = ""
    code: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    theorems: tuple[str, ...] = ()
    graph: str = ""
    widget: str = ""
    exact: str = ""
    limits: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prose:
    """Markdown between claims."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Reported:
    """A table of `k3.reader.reported` by its name; it is shown as prose."""

    table: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Chapter:
    """A file of `k3/paper`; `slug` is its name without the number."""

    file: str
    slug: str
    title: str
    summary: str
    section: str = ""
    order: int = 0
    part: str = ""
    parts: tuple[Claim | Prose, ...] = field(default=())

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims in order."""
        return tuple(part for part in self.parts if isinstance(part, Claim))


@cache
def chapters() -> tuple[Chapter, ...]:
    """Every chapter of the package, in order. Raises: ConfigError."""
    folder = resources.files("k3") / "paper"
    files = sorted(
        (each for each in folder.iterdir() if each.name.endswith(".md")),
        key=lambda each: each.name,
    )
    found = [parse(each.name, each.read_text(encoding="utf-8")) for each in files]
    return tuple(sorted(found, key=lambda each: (each.order, each.file)))


def by_part() -> tuple[tuple[str, tuple[tuple[int, Chapter], ...]], ...]:
    """(part of the book, its chapters with their numbers) in order."""
    numbered = enumerate(chapters(), 1)
    return tuple(
        (part, tuple(group))
        for part, group in groupby(numbered, key=lambda each: each[1].part)
    )


def parse(file: str, text: str) -> Chapter:
    """A chapter from its Markdown. Raises: ConfigError, with file and line."""
    head: dict[str, Any] = {}
    parts: list[Claim | Prose] = []
    for kind, body, line in _blocks(text):
        where = f"{file}:{line}"
        if kind == "chapter":
            head = _table(where, body)
        elif kind == "claim":
            parts.append(_made(Claim, where, _claim(where, body)))
        elif kind == "reported":
            named = _made(Reported, where, _table(where, body))
            parts.append(Prose(text=reported.markdown(named.table)))
        elif body.strip():
            parts.append(Prose(text=body))
    slug = re.sub(r"^\d+-", "", file.removesuffix(".md"))
    given = {**head, "file": file, "slug": slug, "parts": tuple(parts)}
    return _made(Chapter, f"{file}:1", given)


def _blocks(text: str) -> Iterator[tuple[str, str, int]]:
    """(chapter, claim, reported or prose; body; line) in order."""
    lines, start = text.splitlines(keepends=True), 0
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "fence" and token.info.strip() in _KINDS:
            assert token.map is not None
            first, last = token.map
            yield "prose", "".join(lines[start:first]), start + 1
            yield token.info.strip(), token.content, first + 1
            start = last
    yield "prose", "".join(lines[start:]), start + 1


def _claim(where: str, body: str) -> dict[str, Any]:
    # Text holds TeX: a backslash is a backslash, in either kind of quotes.
    table = _table(where, body.replace('"""', "'''"))
    for name in _LISTS:
        value = table.get(name, [])
        if not isinstance(value, list):
            raise ConfigError(
                f"{where}: {name} must be a list of names: got {value!r}; put brackets"
            )
        table[name] = tuple(value)
    return table


def _table(where: str, body: str) -> dict[str, Any]:
    try:
        return tomllib.loads(body)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{where}: a block must be TOML: {error}; text with backslashes takes "
            "single quotes"
        ) from error


def _made(kind: type[Any], where: str, table: Mapping[str, Any]) -> Any:
    known = {each.name for each in fields(kind)}
    unknown = sorted(set(table) - known)
    if unknown:
        raise ConfigError(
            f"{where}: a {kind.__name__.lower()} has no key {unknown[0]!r}; it has "
            f"{', '.join(sorted(known - {'parts', 'file', 'slug'}))}"
        )
    try:
        return kind(**table)
    except TypeError as error:
        raise ConfigError(
            f"{where}: a {kind.__name__.lower()} needs every key without a default: "
            f"{error}; add it"
        ) from error
