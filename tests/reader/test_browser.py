"""The pages in a browser: keys, sizes, schemes, without JavaScript, weight, speed."""

import pytest

from k3.reader.chapter import chapters

SLUGS = [chapter.slug for chapter in chapters()]
OTHERS = ["index", "status", "calculator", "errata", "open", "chat", "search", "help"]
EVERY = [*SLUGS, *OTHERS, "benchmarks", "port"]
# What axe looks at in the default run; make slow looks at every page.
LOOKED_AT = ["index", "kda"]


def wide(page):
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


@pytest.mark.parametrize("path", LOOKED_AT)
def test_axe_finds_nothing(visit, path):
    found = visit()
    found.open(f"{path}.html")
    assert found.violations() == []


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("path", EVERY)
def test_axe_finds_nothing_anywhere(visit, path, width, scheme):
    found = visit(width, color_scheme=scheme)
    page = found.open(f"{path}.html")
    assert wide(page) <= 0
    # What is folded away is looked at too.
    page.evaluate(
        "for (const each of document.querySelectorAll('details')) each.open = true"
    )
    assert wide(page) <= 0
    assert found.violations() == []


def test_axe_finds_nothing_in_the_dark_on_a_narrow_window(visit):
    found = visit(390, color_scheme="dark")
    page = found.open("kda.html")
    assert found.violations() == []
    assert page.evaluate("getComputedStyle(document.body.parentElement).color") != (
        "rgb(27, 28, 29)"
    )


def test_pages_fit_a_narrow_window(visit):
    found = visit(390)
    for slug in ["index", "evaluations", "status"]:
        assert wide(found.open(f"{slug}.html")) <= 0, slug


def test_a_journey_with_keys_alone(visit):
    journey(visit(reduced_motion="reduce"), chapters()[:2])


@pytest.mark.slow
def test_a_journey_through_every_chapter_with_keys_alone(visit):
    journey(visit(reduced_motion="reduce"), chapters())


def journey(found, through):
    """Every claim by j, one back by k, and to the next chapter by n."""
    page = found.open(f"{SLUGS[0]}.html")
    for number, chapter in enumerate(through):
        assert page.url.split("/")[-1].split("#")[0] == f"{chapter.slug}.html"
        for claim in chapter.claims:
            page.keyboard.press("j")
            assert page.evaluate("document.activeElement.id") == claim.id
        if len(chapter.claims) > 1:
            page.keyboard.press("k")
            assert page.evaluate("location.hash") == f"#{chapter.claims[-2].id}"
        if number + 1 < len(through):
            with page.expect_navigation():
                page.keyboard.press("n")


def test_the_skip_link_comes_first(visit):
    page = visit().open("kda.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the text"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_keys_are_listed_and_can_be_switched_off(visit):
    page = visit().open("kda.html")
    page.keyboard.press("?")
    assert page.locator("dialog.keys").is_visible()
    page.locator("dialog.keys input").press("Space")
    page.keyboard.press("Escape")
    assert not page.locator("dialog.keys").is_visible()
    page.keyboard.press("j")
    assert page.evaluate("location.hash") == ""
    page.keyboard.press("?")
    page.locator("dialog.keys input").press("Space")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    assert page.evaluate("location.hash") == f"#{claims('kda')[0].id}"


def claims(slug):
    return next(chapter for chapter in chapters() if chapter.slug == slug).claims


def test_search_by_keys(visit):
    page = visit().open("index.html")
    page.keyboard.press("/")
    page.keyboard.type("delta attention")
    page.wait_for_selector("#found li")
    assert page.get_attribute("#q", "aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("#q", "aria-activedescendant") == "found-0"
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert "kda" in page.url


def test_the_page_of_results(visit):
    page = visit().open("search.html?q=soft%20cap")
    page.wait_for_function("document.querySelector('#count').textContent.includes('“')")
    assert "soft_cap" in page.inner_text("#results")


def test_everything_is_read_without_javascript(visit):
    without_javascript(visit, ["kda"])


@pytest.mark.slow
def test_every_chapter_is_read_without_javascript(visit):
    without_javascript(visit, SLUGS)


def without_javascript(visit, slugs):
    """Passages, code, statements and formulas can be read or unfolded."""
    found = visit(java_script_enabled=False)
    for slug in slugs:
        page = found.open(f"{slug}.html")
        for claim in claims(slug):
            row = page.locator(f"[id='{claim.id}']")
            assert row.locator(".passage").is_visible()
            for code in row.locator("details.code[open] pre").all():
                assert code.is_visible()
            for theorem in row.locator("details.theorem").all():
                assert theorem.locator(".words").is_visible()
            for theorem in row.locator("details.theorem").all()[:1]:
                theorem.locator("summary").click()
                assert theorem.locator(".statement").is_visible()
            if claim.widget:
                assert row.locator(".k3-start table").is_visible()
        if page.locator(".katex-html").count():
            assert page.locator(".katex-html").first.is_visible()
        assert page.locator(".math-missing, .absent").count() == 0


def test_print_leaves_text_code_and_statements(visit):
    printed(visit, ["kda"])


@pytest.mark.slow
def test_every_chapter_prints(visit):
    printed(visit, SLUGS)


def printed(visit, slugs):
    """On paper: no frame, no buttons; passages, code, statements of folded theorems."""
    found = visit(color_scheme="dark")
    for slug in slugs:
        page = found.open(f"{slug}.html")
        page.emulate_media(media="print")
        for gone in (".banner", "nav.chapters", ".around", "footer"):
            assert not page.locator(gone).is_visible(), gone
        assert page.locator(".k3-actions:visible, .k3-controls:visible").count() == 0
        assert page.locator("details.code[open] pre").first.is_visible()
        for statement in page.locator(".statement").all()[:3]:
            assert statement.is_visible()
        ink = page.evaluate("getComputedStyle(document.documentElement).color")
        assert ink == "rgb(0, 0, 0)"
        assert wide(page) <= 0


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_nothing_moves_where_that_is_asked(visit, motion):
    page = visit(reduced_motion=motion).open("kda.html")
    found = page.evaluate("""[...document.querySelectorAll("*")].filter((each) => {
      const style = getComputedStyle(each);
      return style.scrollBehavior === "smooth" || style.animationName !== "none"
        || style.transitionDuration.split(",").some((time) => parseFloat(time) > 0);
    }).length""")
    assert (found == 0) == (motion == "reduce")


WEIGHT = """[...performance.getEntriesByType('resource'),
  ...performance.getEntriesByType('navigation')]
  .reduce((sum, each) => sum + each[kind], 0)"""


def test_a_chapter_is_light(visit):
    # The heaviest; bodies are compressed on the way, as any host does.
    page = visit().open("decoder.html")
    assert page.evaluate(WEIGHT.replace("kind", "'encodedBodySize'")) < 500_000


# A busy machine is no fault of the pages.
@pytest.mark.slow
@pytest.mark.parametrize("slug", SLUGS)
def test_a_chapter_is_light_and_quick(visit, slug):
    page = visit().open(f"{slug}.html")
    assert page.evaluate(WEIGHT.replace("kind", "'encodedBodySize'")) < 500_000
    paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    # The site is built before the first answer; visits after that are what counts.
    times = []
    for _ in range(3):
        page.reload()
        # The entry is written a moment after the page has loaded.
        page.wait_for_function(f"{paint} !== undefined")
        times.append(page.evaluate(paint))
    assert min(times) < 1000


def test_the_filter_shows_claims_of_one_mark(visit):
    page = visit().open("status.html")
    page.get_by_role("button", name="exact", exact=True).click()
    shown = page.locator("#claims-table tr[data-words]:visible")
    words = shown.evaluate_all("rows => rows.map(r => r.dataset.words)")
    assert words
    assert all("exact" in each.split() for each in words)
