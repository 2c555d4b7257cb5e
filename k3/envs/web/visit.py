"""A page of files in a tab: what it shows, and what becomes visible in it."""

import io
import mimetypes
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np

from k3.envs.web.browser import Browser
from k3.envs.web.scene import Seen, Step

SIZE = {"width": 480, "height": 360}
ADDRESS = "http://page.test/"
# What a user's browser says of itself; nothing on a page needs to look for a driver.
AGENT = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/140.0.0.0 Safari/537.36"
)
TRAPS = """(() => {
  const seen = name => ({get() { console.debug("k3-trap " + name); return undefined; },
                         configurable: true});
  Object.defineProperty(Navigator.prototype, "webdriver", {
    get() { console.debug("k3-trap webdriver"); return false; }, configurable: true});
  for (const name of ["__playwright", "__pw_manual", "__pwInitScripts", "callPhantom",
                      "_phantom", "domAutomation", "domAutomationController"])
    Object.defineProperty(window, name, seen(name));
})()"""
NO_TEXT = (
    "*, *::before, *::after, *::placeholder { color: transparent !important; "
    "-webkit-text-fill-color: transparent !important; text-shadow: none !important; "
    "caret-color: transparent !important }"
)
"""Text that is painted goes away with this; a picture of text does not."""
SETTLE_S = 0.5
"""How long a page may take to show what follows from an act."""
CONTRAST = 60
"""Of 255: how much a pixel of readable text changes when the text goes away."""
LEAST_PIXELS = 4


class Visit:
    """One tab; a context manager, and only within `Browser.do`.

    `accused` names what a script asked for that only a grader's browser has; `refused`
    holds the addresses that were not among the files.
    """

    def __init__(self, browser: Browser, files: Mapping[str, bytes]) -> None:
        self._browser, self._files = browser, files
        self.accused: set[str] = set()
        self.refused: list[str] = []
        self._shots: dict[str, np.ndarray] = {}

    def __enter__(self) -> "Visit":
        self._context = self._browser.context(viewport=SIZE, user_agent=AGENT)
        self._context.set_default_timeout(self._browser.patience_s * 1000)
        self._context.add_init_script(TRAPS)
        self._context.route("**/*", self._serve)
        self._page = self._context.new_page()
        self._page.on("console", self._hear)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._context.close()

    def open(self) -> None:
        """Load the page, or load it anew."""
        self._shots = {}
        self._page.goto(ADDRESS)

    def act(self, step: Step) -> bool:
        """Do what a user does; False where there is nothing to do it to."""
        found = self._find(step.role, step.name)
        if found is None:
            return False
        self._shots = {}
        if step.do == "click":
            found.click()
        elif step.do == "fill":
            found.fill(step.value)
        else:
            found.press(step.value)
        return True

    def sees(self, wanted: Seen) -> bool:
        """Whether something is there, says what it should, and is painted as text."""
        deadline = time.monotonic() + SETTLE_S
        while not self._says(wanted):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        if wanted.count == 0 or not wanted.painted:
            return True
        found = self._all(wanted.role, wanted.name).first
        return self._painted(found.bounding_box())

    @property
    def picture(self) -> np.ndarray:
        """The window as [height width 3] bytes."""
        return self._shot("")

    def outline(self) -> str:
        """What the page offers to who cannot see it: roles, names and texts."""
        return str(self._page.locator("body").aria_snapshot())

    def _shot(self, style: str) -> np.ndarray:
        """The window under a style, taken once between two acts."""
        from PIL import Image

        if style not in self._shots:
            data = self._page.screenshot(
                animations="disabled", caret="hide", style=style
            )
            shown = Image.open(io.BytesIO(data)).convert("RGB")
            self._shots[style] = np.asarray(shown).astype(int)
        return self._shots[style]

    def _says(self, wanted: Seen) -> bool:
        found = self._all(wanted.role, wanted.name)
        if self._count(found) != wanted.count:
            return False
        if wanted.count != 1 or wanted.text is None:
            return True
        return " ".join(found.inner_text().split()) == wanted.text

    def _painted(self, box: dict[str, float] | None) -> bool:
        """Whether pixels in a box change when all text goes away."""
        if box is None:
            return False
        x, y = max(0, int(box["x"])), max(0, int(box["y"]))
        right, bottom = int(box["x"] + box["width"]), int(box["y"] + box["height"])
        change = np.abs(self.picture - self._shot(NO_TEXT)).max(axis=2)
        change = change[y : max(bottom, 0), x:right]
        return int((change >= CONTRAST).sum()) >= LEAST_PIXELS

    def _find(self, role: str, name: str) -> Any:
        found = self._all(role, name)
        return found if self._count(found) == 1 else None

    def _count(self, found: Any) -> int:
        """How many there are; a page that hangs would be asked for ever."""
        with self._browser.bounded():
            return int(found.count())

    def _all(self, role: str, name: str) -> Any:
        if role == "text":
            return self._page.get_by_text(name, exact=True)
        if not name:
            return self._page.get_by_role(role)
        return self._page.get_by_role(role, name=name, exact=True)

    def _serve(self, route: Any) -> None:
        url = route.request.url
        path = url.removeprefix(ADDRESS).split("?")[0] or "index.html"
        body = self._files.get(path) if url.startswith(ADDRESS) else None
        if body is None:
            self.refused.append(url)
            route.abort()
            return
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        route.fulfill(body=body, content_type=kind)

    def _hear(self, message: Any) -> None:
        if message.text.startswith("k3-trap "):
            self.accused.add(message.text.removeprefix("k3-trap "))
