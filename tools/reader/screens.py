"""Pictures of pages, to be looked at: python tools/reader/screens.py FOLDER [PAGE ...].

Each page at 1200 and 390 pixels, light and dark, whole and as the first view, and as it
would be printed on A4. Needs Debian's Chromium (tools/debian.sh).
"""

import shutil
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import uvicorn
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from k3.reader import serve
from k3.serve.openai import server

PAGES = (
    *("index", "status", "chat", "calculator"),
    *("transformer", "kda", "mla", "attn-res", "quantile-balancing", "decoder", "mx"),
)
Scheme = Literal["light", "dark"]
SIZES: tuple[tuple[int, Scheme], ...] = (
    (1200, "light"),
    (1200, "dark"),
    (390, "light"),
    (390, "dark"),
)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def main() -> None:
    """Serve the reader, and write a picture of each page in each circumstance."""
    folder, pages = Path(sys.argv[1]), sys.argv[2:] or PAGES
    folder.mkdir(parents=True, exist_ok=True)
    listening = server.listen("127.0.0.1", 0)
    config = uvicorn.Config(serve.app(), log_level="error", lifespan="off")
    running = uvicorn.Server(config)
    threading.Thread(target=running.run, kwargs={"sockets": [listening]}).start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        with sync_playwright() as driver:
            path = shutil.which("chromium")
            browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
            shoot(browser, address, pages, folder)
    finally:
        running.should_exit = True


def shoot(browser: Browser, address: str, pages: Sequence[str], folder: Path) -> None:
    """The pictures of some pages."""
    for width, scheme in SIZES:
        size = ViewportSize(width=width, height=900)
        context = browser.new_context(viewport=size, color_scheme=scheme)
        context.set_default_timeout(120_000)
        tab = context.new_page()
        for name in pages:
            tab.goto(f"{address}/{name}.html", wait_until="load")
            tab.wait_for_timeout(300)
            kind = f"{name}-{width}-{scheme}"
            tab.screenshot(path=folder / f"{kind}-first.png")
            tab.screenshot(path=folder / f"{kind}.png", full_page=True)
            if (width, scheme) == SIZES[0]:
                printed(tab, folder / f"{name}-print.png")
        context.close()


def printed(tab: Page, path: Path) -> None:
    """The page as paper has it, at the width of A4."""
    tab.emulate_media(media="print")
    tab.set_viewport_size({"width": 720, "height": 1000})
    tab.screenshot(path=path, full_page=True)
    tab.set_viewport_size({"width": SIZES[0][0], "height": 900})
    tab.emulate_media(media="screen")


if __name__ == "__main__":
    main()
