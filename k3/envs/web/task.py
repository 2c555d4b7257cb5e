"""A page to be written: a specification in, files out, graded in a real browser."""

import re
from collections.abc import Callable, Mapping

from k3.data.tasks.lot import Lot, Split
from k3.envs.able import TEXT, able
from k3.envs.harness.task import Ability, Steps
from k3.envs.sandbox import Backend, Limits
from k3.envs.web import browser, judge, sites
from k3.envs.web.browser import Browser
from k3.envs.web.judge import Verdict
from k3.envs.web.site import Site
from k3.envs.web.visit import Visit
from k3.errors import RequestError

DOMAIN = "web"
BUILD, DIST = "build.sh", "dist"
MOST_BYTES = 1 << 20
RULES = """\
Write a web page: index.html and what it needs. If there is a build.sh, it is run first
with bash, without network, and the page is what it leaves in dist/. The page is opened
in chromium, in a window of 480 by 360, without network, and used. Graded are its
structure (roles, names, visible text), its behaviour, and its pixels. Submit when it is
done.

"""
_PATH = re.compile(r"(?!.*\.\.)[\w.-]+(/[\w.-]+)*")


class WebPage:
    """Implements `Task`: files as state; structure times behaviour times pixels."""

    def __init__(
        self, site: Site, backend: Backend, browsing: Callable[[], Browser]
    ) -> None:
        self.site, self._backend, self._browsing = site, backend, browsing
        self.files: dict[str, bytes] = {}
        self._verdict: Verdict | None = None

    @property
    def goal(self) -> str:
        """The rules and the specification."""
        return RULES + self.site.spec

    @property
    def abilities(self) -> Mapping[str, Ability]:
        """Files, a build, and a look at the page as it is."""
        write = {"path": TEXT, "text": TEXT}
        return {
            "file_write": able("Write a file of the page.", self._write, write),
            "file_read": able("Read a file.", self._read, {"path": TEXT}),
            "file_list": able("List the files.", self._list),
            "page_look": able("Build and open the page; what it offers.", self._look),
        }

    def submit(self, answer: str) -> None:
        """Grade the files as they are."""
        self._grade()

    def solve(self) -> Steps:
        """The site's own page, written as a build for every other specification."""
        html = self.site.files["index.html"].decode()
        if len(self.site.spec) % 2:
            yield "file_write", {"path": "index.html", "text": html}
        else:
            yield "file_write", {"path": "src/page.html", "text": html}
            text = "mkdir -p dist\ncp src/page.html dist/index.html\n"
            yield "file_write", {"path": BUILD, "text": text}
        return "done"

    def score(self) -> float:
        """0 without a page that builds, else the verdict's product."""
        return self._grade().score

    def fork(self) -> "WebPage":
        """The same files, to be changed or judged on their own."""
        made = WebPage(self.site, self._backend, self._browsing)
        made.files = dict(self.files)
        return made

    def close(self) -> None:
        """Nothing is held; the browser is of the process."""

    def built(self) -> dict[str, bytes]:
        """The files of the page; those of dist/ where there is a build.

        Raises: RequestError where it fails, or leaves no page.
        """
        made = self._build() if BUILD in self.files else self.files
        if "index.html" not in made:
            raise RequestError(
                f"a page has an index.html: got {sorted(made)[:9]}; write one, or let "
                f"{BUILD} leave one in {DIST}/"
            )
        return made

    def _grade(self) -> Verdict:
        if self._verdict is None:
            try:
                files = self.built()
            except RequestError as error:
                self._verdict = Verdict(error=str(error))
            else:
                self._verdict = judge.judge(self._browsing(), files, self.site)
        return self._verdict

    def _build(self) -> dict[str, bytes]:
        box = self._backend.create(self.files, limits=Limits(seconds=20.0))
        try:
            ran = box.run(["bash", BUILD])
            if ran.code:
                said = (ran.stdout + ran.stderr).decode(errors="replace")[-500:]
                raise RequestError(
                    f"{BUILD} must end with 0: got {ran.code} and {said!r}; mend it"
                )
            listed = box.run(["find", DIST, "-type", "f", "-size", f"-{MOST_BYTES}c"])
            paths = listed.text.splitlines()[:100]
            return {p.removeprefix(f"{DIST}/"): box.read(p) for p in paths}
        finally:
            box.destroy()

    def _write(self, path: str, text: str) -> str:
        data = text.encode()
        size = len(data) + sum(len(v) for k, v in self.files.items() if k != path)
        if not _PATH.fullmatch(path) or size > MOST_BYTES:
            raise RequestError(
                "a file has a path of names and slashes, and all have at most "
                f"{MOST_BYTES} bytes: got {path!r} and {size} bytes; write less"
            )
        self._open()
        self.files[path] = data
        return "written"

    def _read(self, path: str) -> str:
        if path not in self.files:
            raise RequestError(f"a file is needed: got {path!r}; list the files")
        return self.files[path].decode()

    def _list(self) -> str:
        return "\n".join(sorted(self.files)) or "nothing"

    def _look(self) -> str:
        self._open()
        files, chromium = self.built(), self._browsing()
        return chromium.do(outline, chromium, files)

    def _open(self) -> None:
        if self._verdict is not None:
            raise RequestError("a page is graded once: it was submitted; nothing more")


def outline(chromium: Browser, files: Mapping[str, bytes]) -> str:
    """Roles, names and texts of a page, or why it does not open."""
    from playwright.sync_api import Error

    try:
        with Visit(chromium, files) as visit:
            visit.open()
            return visit.outline()
    except Error as error:
        return f"Error: {str(error).splitlines()[0]}"


def make(
    split: Split,
    index: int,
    backend: Backend,
    browsing: Callable[[], Browser] = browser.shared,
) -> WebPage:
    """A specification that belongs to the split; kinds take turns."""
    lot = Lot.of(DOMAIN, split, index)
    while True:
        site = sites.SITES[index % len(sites.SITES)](lot.rng)
        if lot.keeps(f"web:{site.spec}"):
            return WebPage(site, backend, browsing)
