"""The pages in a browser: keys, sizes, schemes, without JavaScript, weight, speed."""

import pytest

from k3.reader.chapter import chapters

SLUGS = [chapter.slug for chapter in chapters()]
OTHERS = ["index", "status", "calculator", "errata", "open", "chat", "search", "help"]
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
@pytest.mark.parametrize("path", [*SLUGS, *OTHERS, "benchmarks", "port"])
def test_axe_finds_nothing_anywhere(visit, path, width, scheme):
    found = visit(width, color_scheme=scheme)
    page = found.open(f"{path}.html")
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


@pytest.mark.parametrize("slug", ["kda"])
def test_everything_is_read_without_javascript(visit, slug):
    page = visit(java_script_enabled=False).open(f"{slug}.html")
    for claim in claims(slug):
        row = page.locator(f"#{claim.id}")
        assert row.locator(".passage").is_visible()
        for code in row.locator("details.code[open] pre").all():
            assert code.is_visible()
        for theorem in row.locator("details.theorem").all():
            assert theorem.locator(".words").is_visible()
            theorem.locator("summary").click()
            assert theorem.locator(".statement").is_visible()
    assert page.locator(".katex-html").first.is_visible()
    assert page.locator(".math-missing").count() == 0


def test_print_leaves_text_and_code(visit):
    page = visit().open("kda.html")
    page.emulate_media(media="print")
    assert not page.locator(".banner").is_visible()
    assert not page.locator("nav.chapters").is_visible()
    assert page.locator("details.code pre").first.is_visible()


def test_a_chapter_is_light(visit):
    # The heaviest; bodies are compressed on the way, as any host does.
    page = visit().open("decoder.html")
    size = page.evaluate(
        "[...performance.getEntriesByType('resource'), "
        "...performance.getEntriesByType('navigation')]"
        ".reduce((sum, each) => sum + each.encodedBodySize, 0)"
    )
    assert size < 500_000


# A busy machine is no fault of the pages.
@pytest.mark.slow
def test_a_chapter_is_quick(visit):
    page = visit().open("decoder.html")
    paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    # The site is built before the first answer; a visit after that is what counts.
    page.reload()
    assert page.evaluate(paint) < 1000


def test_the_filter_shows_claims_of_one_mark(visit):
    page = visit().open("status.html")
    page.get_by_role("button", name="exact", exact=True).click()
    shown = page.locator("#claims-table tr[data-words]:visible")
    words = shown.evaluate_all("rows => rows.map(r => r.dataset.words)")
    assert words
    assert all("exact" in each.split() for each in words)
