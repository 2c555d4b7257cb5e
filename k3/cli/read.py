"""`k3 read`: the paper beside its code, theorems and widgets."""

from pathlib import Path
from typing import Annotated

import typer

from k3.cli import options, output
from k3.errors import RequestError

Build = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Write the static site there and end."),
]
Check = Annotated[
    bool, typer.Option("--check", help="Check every claim's evidence and names.")
]
CHECK_FAILED = 1


def read(
    *,
    build: Build = None,
    check: Check = False,
    json: options.Json = False,
) -> int:
    """Read Kimi K3: passage, code, theorem and a live widget side by side.

    \b
    k3 read --build /tmp/k3-site
    k3 read --check
    """
    if build is not None and check:
        raise RequestError(
            "read takes one of --build and --check: got both; choose one"
        )
    if build is not None:
        return _build(build, as_json=json)
    return 0


def _build(folder: Path, *, as_json: bool) -> int:
    from k3.reader import site

    written = site.build(folder)
    if as_json:
        output.json_value({"ok": True, "pages": [str(path) for path in written]})
    else:
        print(f"{len(written)} pages in {folder}; open {folder / 'index.html'}")
    return 0
