"""Web pages: who writes the page scores 1, who fakes one scores 0."""

import base64
import io
import os
import random
import shutil

import numpy as np
import pytest
from PIL import Image

from k3.envs import web
from k3.envs.environment import play
from k3.envs.harness import Harnessed, Task, preset, solver
from k3.envs.local import LocalBackend
from k3.envs.store import Store
from k3.envs.web import judge, sites
from k3.envs.web.scene import Scene

COUNTER, CONVERTER, TASKS = range(3)
SLOW = pytest.mark.slow
INSTANCES = [
    ("train", COUNTER),
    pytest.param("heldout", TASKS, marks=SLOW),
    *(pytest.param("train", index, marks=SLOW) for index in range(1, 9)),
    *(pytest.param("heldout", index, marks=SLOW) for index in range(2)),
]


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    if os.geteuid() and not (shutil.which("chromium") and shutil.which("bwrap")):
        pytest.skip("no chromium or bwrap, and only root may install: tools/debian.sh")
    return LocalBackend(Store(tmp_path_factory.mktemp("store")))


@pytest.fixture(scope="module")
def chromium(backend):
    made = web.Browser(patience_s=120.0)
    yield made
    made.close()


@pytest.fixture
def posed(backend, chromium):
    return lambda index, split="train": web.make(
        split, index, backend, lambda: chromium
    )


def right(task):
    return task.site.files["index.html"].decode()


@pytest.mark.parametrize(("split", "index"), INSTANCES)
def test_who_writes_the_page_scores_one(posed, split, index):
    task = posed(index, split)
    assert isinstance(task, Task)
    played = Harnessed(task, preset("assistant"))
    assert play(played, solver(played)) == 1.0, task._grade()
    assert "graded once" in task.abilities["file_write"].act(path="a", text="b")


@SLOW
def test_another_page_of_the_same_look_scores_one(posed):
    task = posed(COUNTER)
    html = right(task)
    body = html[html.index("<main>") : html.index("<script>")]
    task.files["index.html"] = (
        html.replace('<div role="status">', "<output>")
        .replace("</div>", "</output>")
        .replace("<script>", '<script src="js/app.js"></script><script>')
        .replace("[role=status] {", "output {")
        .replace('"[role=status]"', '"output"')
        .replace("display: flex; flex-direction: column;", "display: grid;")
        .replace("align-items: flex-start;", "justify-items: start;")
        .encode()
    )
    task.files["js/app.js"] = b"document.title += '!';"
    assert "role=" in body
    assert "role=" not in task.files["index.html"].decode()
    assert task.score() == 1.0, task._grade()


def picture(task, chromium):
    shots = chromium.do(judge.pictures, chromium, task.site)
    data = io.BytesIO()
    Image.fromarray(shots[0].astype(np.uint8)).save(data, "png")
    return base64.b64encode(data.getvalue()).decode()


def as_picture(task, chromium):
    """A screenshot as the page."""
    return (
        '<body style="margin:0"><img style="display:block" src="data:image/png;base64,'
        f'{picture(task, chromium)}">'
    )


def as_picture_with_glass(task, chromium):
    """A screenshot, and the real page in glass above it."""
    html = right(task)
    back = f"url(data:image/png;base64,{picture(task, chromium)})"
    clear = "h1,button,[role=status]{opacity:0}"
    return html.replace("</style>", f"{clear}body{{background:{back}}}</style>")


def hidden(style):
    def cheat(task, chromium):
        return right(task).replace("</style>", f"{style}</style>")

    return cheat


def final_state(task, chromium):
    """All that may ever be said, at once; nothing happens."""
    html = right(task)
    said = [s.text for scene in task.site.scenes for s in scene.seen if s.text]
    rows = "".join(f'<div role="status">{text}</div>' for text in said)
    return html[: html.index("<script>")].replace("</main>", f"{rows}</main>")


def dead(task, chromium):
    """It looks right, and does nothing."""
    return right(task)[: right(task).index("<script>")]


def detector(task, chromium):
    """It works only where it believes to be graded."""
    script = "if (navigator.webdriver || navigator.userAgent.includes('Headless')) {"
    return (
        right(task)
        .replace("<script>", f"<script>{script}")
        .replace("</script>", "}</script>")
    )


def searcher(task, chromium):
    """It is right, and looks for the driver besides."""
    return right(task).replace("<script>", "<script>window.__playwright;")


def remote(task, chromium):
    """The page is somewhere else."""
    return '<script src="https://example.com/page.js"></script>'


QUICK = [
    as_picture,
    as_picture_with_glass,
    hidden("h1,button,[role=status]{opacity:0}"),
    final_state,
    detector,
]
LONG = [
    dead,
    remote,
    searcher,
    hidden("h1,button,[role=status]{color:transparent!important}"),
    hidden("main,h1{position:relative;left:-9999px}"),
    hidden("h1,button,[role=status]{font-size:0!important}"),
]
CHEATERS = [
    *((COUNTER, cheat) for cheat in QUICK),
    *(pytest.param(COUNTER, cheat, marks=SLOW) for cheat in LONG),
    *(
        pytest.param(index, cheat, marks=SLOW)
        for index in (CONVERTER, TASKS)
        for cheat in (*QUICK, *LONG)
    ),
]


@pytest.mark.parametrize(("index", "cheat"), CHEATERS)
def test_cheaters_score_zero(posed, chromium, index, cheat):
    task = posed(index)
    task.files["index.html"] = cheat(task, chromium).encode()
    assert task.score() == 0.0, task._grade()
    if cheat is searcher:
        assert task._grade().accused == ("__playwright",)
        assert task._grade().behaviour == 1.0


@SLOW
def test_what_is_missing_lowers_the_score(posed):
    task = posed(COUNTER)
    task.files["index.html"] = (
        right(task).replace("reset.onclick", "reset.idle").encode()
    )
    verdict = task._grade()
    assert (verdict.structure, verdict.behaviour) == (1.0, pytest.approx(2 / 3))
    assert task.score() == pytest.approx(2 / 3)


def test_who_looks_for_a_driver_is_accused(posed):
    task = posed(COUNTER)
    task.files["index.html"] = b"<script>navigator.webdriver || callPhantom</script>"
    assert task.score() == 0.0
    assert task._grade().accused == ("callPhantom", "webdriver")


@pytest.mark.parametrize("kind", sites.SITES)
@pytest.mark.parametrize("seed", range(20))
def test_no_scene_ends_where_the_page_begins(kind, seed):
    site = kind(random.Random(seed))
    for scene in site.scenes:
        assert scene.steps
        assert not set(scene.seen) <= set(site.structure)


def test_nothing_scores_zero(posed):
    assert posed(COUNTER).score() == 0.0
    empty = posed(COUNTER)
    empty.files["index.html"] = b""
    assert empty.score() == 0.0


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 3", "must end with 0: got 3"),
        ("mkdir dist; echo > dist/other.html", "a page has an index.html: got"),
        ("curl -s http://127.0.0.1/ > x || exit 7", "must end with 0: got 7"),
        ("ln -s / dist; true", "a page has an index.html: got"),
    ],
)
def test_a_build_that_fails_scores_zero(posed, script, said):
    task = posed(TASKS)
    task.files = {"index.html": right(task).encode(), "build.sh": script.encode()}
    assert said in task.abilities["page_look"].act()
    assert task.score() == 0.0


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("for (;;);", "Timeout"),
        # Loaded, and hung when things are counted: the driver waits without end.
        pytest.param("setTimeout(() => { for (;;); }, 30)", "", marks=SLOW),
    ],
)
def test_a_page_that_hangs_is_given_up(posed, chromium, script, said):
    task = posed(COUNTER)
    task.files["index.html"] = f"<script>{script}</script>".encode()
    chromium.do(judge.pictures, chromium, task.site)
    chromium.patience_s, before = 1.0, chromium.patience_s
    try:
        assert task.score() == 0.0
        assert said in task._grade().error
        assert task._grade().error
    finally:
        chromium.patience_s = before


@SLOW
def test_a_browser_that_died_is_started_anew(posed, chromium):
    task = posed(COUNTER)
    task.files["index.html"] = right(task).encode()
    chromium.do(chromium._browser.close)
    assert task.score() == 1.0, task._grade()


def test_a_look_names_what_is_there(posed):
    task = posed(COUNTER)
    say = {name: ability.act for name, ability in task.abilities.items()}
    assert "a page has an index.html" in say["page_look"]()
    assert say["file_list"]() == "nothing"
    assert say["file_write"](path="index.html", text="<h1>Hi</h1>") == "written"
    assert "heading" in say["page_look"]()
    assert say["file_read"](path="index.html") == "<h1>Hi</h1>"
    assert "a file is needed" in say["file_read"](path="none")
    for path in ("../x", "/etc/x", "a//b", ""):
        assert "a file has a path" in say["file_write"](path=path, text="")
    assert "all have at most" in say["file_write"](path="x", text="x" * 2_000_000)
    other = task.fork()
    other.files.clear()
    assert say["file_list"]() == "index.html"


def test_likeness_is_nothing_for_a_plain_area():
    there = np.full((20, 30, 3), 240)
    there[5:9, 5:20] = 10
    assert judge.likeness(there, there) == 1.0
    assert judge.likeness(np.full_like(there, 240), there) == 0.0
    assert judge.likeness(np.full_like(there, 0), there) == 0.0
    moved = np.roll(there, 1, axis=1)
    assert 0.8 < judge.likeness(moved, there) < 0.9


def test_instances_depend_on_split_and_index(posed):
    goals = [posed(i, s).goal for s in ("train", "heldout") for i in range(6)]
    assert goals == [posed(i, s).goal for s in ("train", "heldout") for i in range(6)]
    assert len(set(goals)) == len(goals)
    assert all(isinstance(scene, Scene) for scene in posed(0).site.scenes)
    assert len(sites.SITES) == 3
