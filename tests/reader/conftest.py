"""Chromium, and the whole site on a port of its own."""

import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

from k3.reader import serve
from k3.serve.openai import server

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
AXE = (Path(__file__).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the reader, served as `k3 read` serves it."""
    listening = server.listen("127.0.0.1", 0)
    config = uvicorn.Config(serve.app(), log_level="error", lifespan="off")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    running.should_exit = True
    thread.join()


# Not for the session: Playwright's loop would run on under the tests of other files,
# and asyncio.run() refuses to start beside it.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's browser; tools/test.sh installs it where it may."""
    path = shutil.which("chromium")
    if path is None and os.geteuid() and "CI" not in os.environ:
        pytest.skip("no chromium, and only root may install it: apt install chromium")
    assert path, "no chromium: tools/debian.sh installs it"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Visit:
    """A tab, what it asked for, and what went wrong in it."""

    page: Page
    site: str
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        """Go to a page of the site and wait for its scripts."""
        self.page.goto(f"{self.site}/{path}", wait_until="load")
        return self.page

    def violations(self) -> list[str]:
        """What axe finds: a line for each element."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE)
        found = self.page.evaluate(
            "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations)"
        )
        return [f"{v['id']}: {n['html'][:160]}" for v in found for n in v["nodes"]]


@pytest.fixture
def visit(chromium: Browser, site: str, request: pytest.FixtureRequest):
    """A fresh tab; `visit(width=390, color_scheme="dark")` for other circumstances.

    Every test that uses it also holds that nothing was wrong and nothing external.
    """
    made: list[Visit] = []

    def start(width: int = 1200, address: str = "", **options: object) -> Visit:
        size = {"width": width, "height": 900}
        context = chromium.new_context(viewport=size, **options)
        # A machine that others share is slow, not wrong.
        context.set_default_timeout(600_000)
        found = Visit(context.new_page(), address or site)
        found.page.on("request", lambda r: found.requests.append(r.url))
        found.page.on("pageerror", lambda e: found.problems.append(str(e)))
        found.page.on(
            "console",
            lambda m: m.type in ("error", "warning") and found.problems.append(m.text),
        )
        made.append(found)
        return found

    yield start
    for each in made:
        each.page.context.close()
        assert not each.problems
        own = (each.site, "data:", "blob:")
        assert all(url.startswith(own) for url in each.requests)
