"""Documents under a search: SQLite's full-text index, ranked by BM25."""

import re
import sqlite3
import threading
import weakref
from collections.abc import Iterable
from dataclasses import dataclass

from k3.data.corpora.document import Document

PAGE_LINES = 40
SNIPPET_TOKENS = 16
MOST_WORDS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A page that matches: its document, its first line from 1, some words of it."""

    name: str
    line: int
    snippet: str


class Library:
    """Documents by name; pages of 40 lines are what a search finds. Nothing changes."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.lines = {d.name: tuple(d.text.splitlines()) for d in documents}
        self._lock = threading.Lock()
        self._store = sqlite3.connect(":memory:", check_same_thread=False)
        self._end = weakref.finalize(self, self._store.close)
        self._store.execute(
            "create virtual table pages using fts5(name unindexed, line unindexed, "
            "text, tokenize = 'porter unicode61')"
        )
        self._store.executemany("insert into pages values (?, ?, ?)", self._pages())
        self._store.commit()

    def search(self, query: str, most: int = 5) -> list[Hit]:
        """The best pages for any word of a query, the best first.

        Of words in double quotes each group must stand on a page as it is.
        """
        groups = [re.findall(r"\w+", group) for group in query.split('"')[1::2]]
        wanted = " AND ".join(f'"{" ".join(words)}"' for words in groups if words)
        if not wanted:
            words = re.findall(r"\w+", query)[:MOST_WORDS]
            wanted = " OR ".join(f'"{word}"' for word in words)
        if not wanted:
            return []
        with self._lock:
            rows = self._store.execute(
                "select name, line, snippet(pages, 2, '', '', ' ... ', ?) from pages "
                "where pages match ? order by bm25(pages), rowid limit ?",
                (SNIPPET_TOKENS, wanted, most),
            ).fetchall()
        return [
            Hit(name=name, line=line, snippet=" ".join(snippet.split()))
            for name, line, snippet in rows
        ]

    def find(self, name: str, words: str, most: int = 20) -> list[int]:
        """Lines, from 1, on which these words begin, however lines break them."""
        lines, wanted = self.lines[name], " ".join(words.split())
        if not wanted:
            return []
        found = []
        for at, line in enumerate(lines):
            own = " ".join(line.split())
            after = " ".join(" ".join(lines[at + 1 : at + 12]).split())
            begins = f"{own} {after}".find(wanted)
            if own and 0 <= begins < len(own):
                found.append(at + 1)
        return found[:most]

    def close(self) -> None:
        """Drop the index."""
        with self._lock:
            self._end()

    def _pages(self) -> Iterable[tuple[str, int, str]]:
        for name, lines in self.lines.items():
            for start in range(0, len(lines), PAGE_LINES):
                text = "\n".join(lines[start : start + PAGE_LINES])
                yield name, start + 1, text
