"""In the browser: every widget's numbers are Python's, and so is every graph."""

import json

import numpy as np
import pytest

from k3 import graph
from k3.graph import draw, json_form, shapes
from k3.reader import trace, widgets
from k3.reader.widgets import control
from k3.reader.widgets import widget as one

STATES = 24

RUN = """async (cases) => {
  const model = await import("/static/widgets/model.js");
  const {evaluate, difference, fromAddress, address} = model;
  return cases.map(({data, states, wanted}) => states.map((state, i) => {
    const back = fromAddress(data, address(data, state));
    if (JSON.stringify(back) !== JSON.stringify(state)) return "the link loses it";
    return difference(evaluate(data, state), wanted[i]);
  }));
}"""
GRAPHS = """async (cases) => {
  const {run} = await import("/static/graph.js");
  const {RULES} = await import("/static/primitives.js");
  const {difference} = await import("/static/widgets/model.js");
  const far = cases.map((c) =>
    difference(run(c.graph, c.env, c.sizes).outputs, c.wanted));
  return {far, rules: Object.keys(RULES)};
}"""


def cases(name):
    found = widgets.get(name)
    rng = np.random.default_rng(6)
    drawn = [one.draw(found, rng) for _ in range(STATES - 1)]
    states = [found.default, *drawn]
    wanted = [widgets.evaluate(name, state) for state in states]
    return {"data": one.export(found), "states": states, "wanted": wanted}


def test_every_widget_computes_what_python_does(visit):
    page = visit().open("help.html")
    found = page.evaluate(RUN, [cases(name) for name in widgets.names()])
    for name, far in zip(widgets.names(), found, strict=True):
        assert len(far) >= 20
        assert all(isinstance(x, int | float) and x < 1e-12 for x in far), (name, far)


def test_every_graph_and_primitive_runs_in_the_page(visit):
    page = visit().open("help.html")
    asked = []
    for name in graph.catalogue:
        block = graph.get(name)
        sizes = draw.sizes(block)
        env = draw.draw(block, sizes, 1)
        wanted = graph.evaluate(block, env, sizes)
        asked.append(
            {
                "graph": json_form.plain(block),
                "env": {key: x.tolist() for key, x in env.items()},
                "sizes": sizes,
                "wanted": {key: x.tolist() for key, x in wanted.items()},
            }
        )
    found = page.evaluate(GRAPHS, asked)
    assert max(found["far"]) < 1e-12
    assert set(found["rules"]) == shapes.RULES.keys()


@pytest.fixture
def stage(visit):
    """All widgets on one page, as a chapter holds them."""
    seen = visit()
    page = seen.open("help.html")
    page.evaluate(
        """async (html) => {
          document.documentElement.dataset.served = "";
          const sheet = Object.assign(document.createElement("link"),
            {rel: "stylesheet", href: "/static/widgets.css"});
          document.head.append(sheet);
          const main = document.querySelector("main");
          main.innerHTML = `<h1>All</h1><h2>Widgets</h2><h3>Row</h3>${html}`;
          await import("/static/widgets/index.js");
        }""",
        "".join(map(widgets.element, widgets.names())) + widgets.graph("kda_update"),
    )
    page.wait_for_function("document.querySelector('k3-graph').nodes")
    return seen


def test_figures_links_python_and_axe(stage):
    page = stage.page
    assert page.locator("k3-widget .k3-card").count() == len(widgets.names())
    assert page.locator(".k3-figure:empty").count() == 0
    assert stage.violations() == []
    card = page.locator("#widget-situ")
    gate = card.get_by_role("spinbutton", name="gate", exact=True)
    gate.fill("3")
    gate.press("Enter")
    value = widgets.evaluate("situ", {"gate": 3.0})["situ"]
    assert f"{value:.6g}" in card.locator(".k3-numbers").inner_text()
    handle = card.locator(".handle")
    handle.press("ArrowRight")
    assert gate.input_value() == "3.05"
    card.get_by_role("button", name="Copy link").click()
    assert page.evaluate("location.hash") == "#widget-situ?gate=3.05"
    card.get_by_role("button", name="Run in Python").click()
    card.get_by_text("Largest difference").wait_for()
    assert "difference 0.0e+0" in card.locator(".k3-status").inner_text()
    card.get_by_role("button", name="Reset").click()
    assert gate.input_value() == "2"


def test_widgets_reset_link_and_copy_python_that_runs(stage):
    link_and_copy(stage, widgets.names()[::5])


@pytest.mark.slow
def test_every_widget_resets_links_and_copies_python_that_runs(stage):
    link_and_copy(stage, widgets.names())


def link_and_copy(stage, names):
    """A drawn state: its link opens it again, its Python prints its numbers."""
    page = stage.page
    page.evaluate(
        "navigator.clipboard.writeText = async (text) => { window.copied = text; }"
    )
    rng = np.random.default_rng(7)
    for name in names:
        found, card = widgets.get(name), page.locator(f"#widget-{name}")
        state = one.draw(found, rng)
        card.evaluate("(card, state) => card.set(state)", state)
        card.get_by_role("button", name="Copy link").click()
        link = page.evaluate("window.copied")
        assert link.startswith(f"{stage.site}/help.html#widget-{name}"), name
        card.get_by_role("button", name="Copy as Python").click()
        printed = []
        space = {"print": printed.append}
        exec(page.evaluate("window.copied"), space)
        values = {key: control.plain(x) for key, x in printed[0].items()}
        assert values == widgets.evaluate(name, state), name
        card.get_by_role("button", name="Reset").click()
        start = json.loads(json.dumps(found.default))
        assert card.evaluate("card => card.state") == start, name
        page.evaluate("location.hash = ''")
        page.evaluate("link => { location.hash = new URL(link).hash; }", link)
        page.wait_for_function(
            "([id, wanted]) => JSON.stringify(document.getElementById(id).state)"
            " === JSON.stringify(wanted)",
            arg=[f"widget-{name}", state],
        )


BESIDE = """card => card.data.controls
  .filter((spec) => ["number", "size"].includes(spec.kind))
  .map((spec) => {
    const box = card.querySelector(`[id="${card.id}-${spec.name}"]`);
    const slider = box.parentElement.querySelector("[type=range]");
    box.value = spec.low;
    box.dispatchEvent(new Event("change", {bubbles: true}));
    const down = [card.state[spec.name], slider.valueAsNumber];
    slider.value = spec.high;
    slider.dispatchEvent(new Event("input", {bubbles: true}));
    const up = [card.state[spec.name], box.valueAsNumber];
    return [...down.map((x) => x - spec.low), ...up.map((x) => x - spec.high)];
  })"""


def test_a_number_box_stands_beside_every_slider_and_both_set(stage):
    for name in widgets.names():
        for far in stage.page.locator(f"#widget-{name}").evaluate(BESIDE):
            assert max(map(abs, far)) < 1e-9, name


def test_margins_are_added_and_removed(stage):
    page = stage.page
    card = page.locator("#widget-quantile-balancing")
    margins = widgets.get("quantile-balancing").default["margins"]
    for change, value in (
        ("Add one", [*margins, margins[-1]]),
        ("Remove one", margins),
        ("Remove one", margins[:-1]),
    ):
        card.get_by_role("button", name=change).click()
        assert card.evaluate("card => card.state.margins") == value
        wanted = widgets.evaluate("quantile-balancing", {"margins": value})
        assert card.evaluate("card => card.outputs.weak") == wanted["weak"]
        assert card.locator(".k3-many input").count() == len(value)
    for _ in range(len(margins)):
        if card.get_by_role("button", name="Remove one").is_enabled():
            card.get_by_role("button", name="Remove one").click()
    assert card.evaluate("card => card.state.margins.length") == 1
    card.get_by_role("button", name="Reset").click()
    assert card.evaluate("card => card.state.margins") == margins


def test_a_text_of_ones_own_is_traced(stage):
    page, text = stage.page, "A dict of lists"
    card = page.locator("#widget-trace")
    page.evaluate(
        "navigator.clipboard.writeText = async (text) => { window.copied = text; }"
    )
    card.get_by_label("A text of your own").fill(text)
    card.get_by_role("button", name="Trace it").click()
    found = trace.record(text)
    card.get_by_text(f"{len(found['tokens'])} tokens read.").wait_for()
    assert card.evaluate("card => card.outputs") == found["steps"][-1]
    card.get_by_role("slider").press("ArrowLeft")
    assert card.evaluate("card => card.outputs") == found["steps"][-2]
    card.get_by_role("button", name="Run in Python").click()
    card.get_by_text("Largest difference 0.0e+0").wait_for()
    card.get_by_role("button", name="Copy as Python").click()
    printed = []
    exec(page.evaluate("window.copied"), {"print": printed.append})
    assert printed == [found["steps"][-2]]
    card.get_by_label("A text of your own").fill("word " * 80)
    card.get_by_role("button", name="Trace it").click()
    card.get_by_text("a trace takes at most").wait_for()
    stage.problems.clear()


def test_graph_pane_by_keyboard(stage):
    pane = stage.page.locator("k3-graph")
    first = pane.locator(".node").first
    first.focus()
    assert "input" in pane.locator(".k3-node").inner_text()
    first.press("ArrowDown")
    says = pane.locator(".k3-node").inner_text()
    assert "decayed contract [H, K, V] at k3/graph/kda.py" in says
    assert pane.locator(".k3-node table").count() == 2
    pane.locator(".node:focus").press("ArrowDown")
    pane.locator(".node:focus").press("ArrowUp")
    assert pane.locator(".node[tabindex='0']").count() == 1
