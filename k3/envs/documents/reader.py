"""An agent's reading of a library: search, open, find, and what has been opened."""

from collections.abc import Mapping

from k3.envs.documents.library import PAGE_LINES, Library
from k3.envs.harness.task import Ability

_TEXT, _LINE = {"type": "string"}, {"type": "integer"}


class Reader:
    """The abilities to read, and which lines were shown by `open`."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._opened: dict[str, set[int]] = {}

    @property
    def abilities(self) -> Mapping[str, Ability]:
        """Search, open, find."""
        return {
            "search": Ability(
                words='Search all documents for any of these words, or for all "groups '
                'of words" in double quotes.',
                properties={"query": _TEXT},
                act=self.search,
            ),
            "open": Ability(
                words=f"Read {PAGE_LINES} lines of a document from a line on.",
                properties={"name": _TEXT, "start": _LINE},
                act=self.open,
                optional=frozenset({"start"}),
            ),
            "find": Ability(
                words="Say on which lines of a document these words begin.",
                properties={"name": _TEXT, "text": _TEXT},
                act=self.find,
            ),
        }

    def search(self, query: str) -> str:
        """The best pages, a line each."""
        hits = self.library.search(query)
        if not hits:
            return "Nothing matches."
        return "\n".join(f"{h.name} from line {h.line}: {h.snippet}" for h in hits)

    def open(self, name: str, start: int = 1) -> str:
        """A page of a document under a line that says which."""
        if name not in self.library.lines:
            return self._unknown(name)
        lines = self.library.lines[name]
        if not 1 <= start <= max(1, len(lines)):
            return f"Error: {name} has the lines 1 to {len(lines)}: got {start}."
        end = min(len(lines), start - 1 + PAGE_LINES)
        self._opened.setdefault(name, set()).update(range(start - 1, end))
        head = f"{name}, lines {start} to {end} of {len(lines)}"
        return "\n".join([head, *lines[start - 1 : end]])

    def find(self, name: str, text: str) -> str:
        """The lines on which words begin; it shows no text."""
        if name not in self.library.lines:
            return self._unknown(name)
        found = self.library.find(name, text)
        if not found:
            return f"{name} does not have these words."
        return "lines " + ", ".join(map(str, found))

    def has_opened(self, name: str, quote: str) -> bool:
        """Whether a quote stands in lines of a document that were opened."""
        lines = self.library.lines.get(name, ())
        opened = self._opened.get(name, set())
        # A line that was not opened breaks what is around it, as no quote can.
        seen = [line if at in opened else "\0" for at, line in enumerate(lines)]
        wanted = plain(quote)
        return bool(wanted) and "\0" not in wanted and wanted in plain("\n".join(seen))

    def _unknown(self, name: str) -> str:
        return f"Error: there is no document {name!r}; search names the documents."


def plain(text: str) -> str:
    """A text with single blanks for all white space."""
    return " ".join(text.split())
