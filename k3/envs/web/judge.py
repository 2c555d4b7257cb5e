"""Grade a page: structure, behaviour and pixels, each against a site's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from k3.envs.web.browser import Browser
from k3.envs.web.scene import Scene
from k3.envs.web.site import Site
from k3.envs.web.visit import Visit

FULL = 0.9
"""Likeness of pixels from which on they get full marks."""
KEPT = 32
"""Sites whose pictures a browser remembers."""

Files = Mapping[str, bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Three shares from 0 to 1; who looks for a grader is accused and gets 0.

    The score is their product: what is missing altogether is made up by nothing, and
    a page without any of the structure is looked at no further.
    """

    structure: float = 0.0
    behaviour: float = 0.0
    pixels: float = 0.0
    accused: tuple[str, ...] = ()
    error: str = ""

    @property
    def score(self) -> float:
        """From 0 to 1."""
        if self.accused or self.error:
            return 0.0
        return self.structure * self.behaviour * self.pixels


def judge(browser: Browser, files: Files, site: Site) -> Verdict:
    """Look at a page and use it; one that does not open or hangs has an error.

    Where the browser itself dies it is started anew and the page judged again, once.
    """

    def look(again: bool) -> Verdict:
        from playwright.sync_api import Error

        try:
            right = pictures(browser, site)
            return _judge(browser, files, site, right)
        except Error as error:
            if browser.alive or not again:
                return Verdict(error=str(error).splitlines()[0])
        browser.revive()
        return look(again=False)

    return browser.do(look, True)


def _judge(
    browser: Browser, files: Files, site: Site, right: Sequence[np.ndarray]
) -> Verdict:
    with Visit(browser, files) as visit:
        visit.open()
        there = [visit.sees(one) for one in site.structure]
        if not any(there):
            return Verdict(accused=tuple(sorted(visit.accused)))
        shots, played = [visit.picture], []
        for scene in site.scenes:
            visit.open()
            played.append(_plays(visit, scene))
            shots.append(visit.picture)
        accused = tuple(sorted(visit.accused))
    like = [likeness(*pair) for pair in zip(shots, right, strict=True)]
    return Verdict(
        structure=sum(there) / len(there),
        behaviour=sum(played) / len(played),
        pixels=min(1.0, sum(like) / len(like) / FULL),
        accused=accused,
    )


def pictures(browser: Browser, site: Site) -> list[np.ndarray]:
    """The site's own page as it opens, and at the end of each scene."""
    if site.spec in browser.drawn:
        return browser.drawn[site.spec]
    kept: list[np.ndarray] = []
    with Visit(browser, site.files) as visit:
        for scene in (Scene((), ()), *site.scenes):
            visit.open()
            assert all(map(visit.act, scene.steps)), f"a page of {site.name} works"
            kept.append(visit.picture)
    browser.drawn[site.spec] = kept
    while len(browser.drawn) > KEPT:
        del browser.drawn[next(iter(browser.drawn))]
    return kept


def _plays(visit: Visit, scene: Scene) -> bool:
    acted = all(visit.act(step) for step in scene.steps)
    return acted and all(visit.sees(one) for one in scene.seen)


def likeness(picture: np.ndarray, right: np.ndarray) -> float:
    """1 for the same picture, 0 for one no nearer than a plain area.

    The measure is the mean absolute difference of the channels, as a share of what a
    picture in the right one's most frequent colour would have: a background alone is
    worth nothing.
    """
    colours, counts = np.unique(right.reshape(-1, 3), axis=0, return_counts=True)
    plain = np.abs(right.astype(float) - colours[counts.argmax()]).mean()
    off = np.abs(right.astype(float) - picture.astype(float)).mean()
    return float(max(0.0, 1.0 - off / max(plain, 1e-9)))
