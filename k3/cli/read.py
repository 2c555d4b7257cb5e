"""`k3 read`: the paper beside its code, theorems and widgets."""

import os
import sys
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
    bool, typer.Option("--check", help="Check every name and piece of evidence.")
]
Host = Annotated[str, typer.Option(help="The address to listen on.")]
Port = Annotated[int, typer.Option(help="The port; 0 takes a free one.")]
Browser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="Open the pages in a browser.")
]
CHECK_FAILED = 1


def read(
    *,
    build: Build = None,
    check: Check = False,
    host: Host = "127.0.0.1",
    port: Port = 0,
    browser: Browser = True,
    json: options.Json = False,
) -> int:
    """Read Kimi K3: passage, code, theorem and a live figure side by side.

    \b
    k3 read
    k3 read --build /tmp/k3-site
    k3 read --check
    """
    if build is not None and check:
        raise RequestError(
            "read takes one of --build and --check: got both; choose one"
        )
    if check:
        return _check(as_json=json)
    if build is not None:
        return _build(build, as_json=json)
    return _serve(host, port, browser=browser, as_json=json)


def _build(folder: Path, *, as_json: bool) -> int:
    """Every page as a file."""
    from k3.reader import site

    written = site.build(folder)
    if as_json:
        output.json_value({"ok": True, "pages": [str(path) for path in written]})
    else:
        print(f"{len(written)} pages in {folder}; any web server shows them")
    return 0


def _check(*, as_json: bool) -> int:
    """What is missing, stale or wrong; 1 where anything is."""
    from k3.reader import check

    found = check.problems()
    if as_json:
        output.json_value({"ok": not found, "problems": found})
    else:
        print("\n".join(found) or "every claim has its names and its evidence")
    return CHECK_FAILED if found else 0


def _serve(host: str, port: int, *, browser: bool, as_json: bool) -> int:
    """Serve until interrupted, and open the browser where there is one."""
    try:
        import uvicorn
    except ModuleNotFoundError:
        raise RequestError(
            "k3 read serves with starlette and uvicorn: they are missing; install "
            "k3[serve], or write the pages with k3 read --build DIR"
        ) from None
    from k3.reader import serve
    from k3.serve.openai import server

    listening = server.listen(host, port)
    url = "http://{}:{}/".format(*listening.getsockname()[:2])
    if as_json:
        output.json_line({"url": url})
    else:
        print(f"k3: the reader is at {url}; Ctrl-C ends it", flush=True)
    if browser and _has_screen():
        _open(url)
    config = uvicorn.Config(serve.app(), log_level="warning", lifespan="off")
    uvicorn.Server(config).run(sockets=[listening])
    return 0


def _has_screen() -> bool:
    """Whether a browser would have somewhere to show itself."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(url: str) -> None:
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
