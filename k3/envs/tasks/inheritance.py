"""Questions along base classes of Python's library: real documents, shared bases.

They differ between Python versions, as the files of the library do.
"""

import pathlib
import sysconfig
from functools import cache

from k3.data.corpora.document import Document
from k3.data.tasks.lot import Lot, Split
from k3.envs.documents import expand, facts
from k3.envs.documents.expand import Path
from k3.envs.documents.library import Library
from k3.envs.tasks import reading
from k3.envs.tasks.reading import Reading
from k3.errors import RequestError

DOMAIN = "inheritance"
DEEPEST = 3
FOLDERS = ("asyncio", "concurrent", "email", "http", "importlib", "json", "logging")
FILES = ("_collections_abc.py", "ast.py", "pickle.py", "socketserver.py", "typing.py")


def make(split: Split, index: int) -> Reading:
    """The base of the base of a class; which classes are held out is by their hash."""
    lot = Lot.of(DOMAIN, split, index)
    library, paths = _shelf()
    while True:
        path = lot.rng.choice(paths[index % DEEPEST])
        if lot.keeps(f"{DOMAIN}:{expand.asked(path)}"):
            break
    return reading.of_paths((path,), library, facts.of_classes)


@cache
def _shelf() -> tuple[Library, list[list[Path]]]:
    """The library and the paths of its graph by depth; every class is a topic."""
    documents = list(_documents())
    found = [fact for document in documents for fact in facts.of_classes(document)]
    known = facts.unambiguous(found)
    graph = expand.expand([fact.subject for fact in known.values()], known, 1)
    paths = [graph.paths(1 + at) for at in range(DEEPEST)]
    if not all(paths):
        raise RequestError(
            "inheritance needs the source files of Python's library: got "
            f"{len(documents)} of them; install Python with its sources"
        )
    return Library(documents), paths


def _documents() -> list[Document]:
    root = pathlib.Path(sysconfig.get_path("stdlib"))
    paths = [path for name in FOLDERS for path in (root / name).rglob("*.py")]
    paths += [root / name for name in FILES]
    return [
        Document(name=path.relative_to(root).as_posix(), text=path.read_text("utf-8"))
        for path in sorted(paths)
        if path.is_file() and path.stat().st_size
    ]
