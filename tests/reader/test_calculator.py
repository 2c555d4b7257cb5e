"""The page's numbers are those of k3.config.sizes, at sizes that nobody typed."""

import json

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from k3 import recipes
from k3.reader import calculator


def evaluate(tree, values):
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return values[tree]
    left, right = (evaluate(each, values) for each in tree[1:])
    operation = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
    return left // right if tree[0] == "/" else operation[tree[0]](left, right)


def drawn(seed):
    rng = np.random.default_rng(seed)
    names = (*calculator.FREE, *calculator.ASKED)
    return {name: int(rng.integers(1, 10**4)) for name in names}


def wanted(model, values):
    config = calculator.changed(calculator.MODELS[model](), values)
    return calculator.results(config, values)


@given(st.sampled_from(sorted(calculator.MODELS)), st.integers(0, 99))
def test_formulas_are_the_function(model, seed):
    values = drawn(seed)
    formulas = calculator.formulas(model)
    found = {name: evaluate(tree, values) for name, tree in formulas.items()}
    assert found == wanted(model, values)


def test_models_are_those_of_the_recipes():
    assert calculator.released() == recipes.released()
    assert calculator.paper() == recipes.paper()


def test_numbers_of_the_release():
    found = wanted("released", calculator.ASKED)
    assert found["total"] == 2_779_931_837_184
    assert found["row_bytes"] == 24 * 576 * 2


def test_the_page_says_the_same_without_javascript():
    body = calculator.page().body
    assert "2,779,931,837,184" in body
    assert "1.56 TB = 1,560,860,324,864 B" in body


def test_a_browser_finds_the_same_numbers(visit):
    page = visit().open("calculator.html")
    script = """async ([name, values]) => {
      const {evaluate} = await import("/static/calculator.js");
      const data = await (await fetch("/static/data/sizes.json")).json();
      const formulas = Object.entries(data.models[name].formulas);
      return Object.fromEntries(
        formulas.map(([key, tree]) => [key, String(evaluate(tree, values))]));
    }"""
    for seed in range(20):
        model = sorted(calculator.MODELS)[seed % 3]
        found = page.evaluate(script, [model, drawn(seed)])
        expected = wanted(model, drawn(seed))
        assert found == {name: str(value) for name, value in expected.items()}


def test_the_form_recomputes(visit):
    page = visit().open("calculator.html")
    page.wait_for_selector("#sizes[data-ready]")
    page.fill("[name=tokens]", "0")
    state = "[data-result=sequence_bytes]"
    assert page.inner_text(state) == page.inner_text("[data-result=fixed_bytes]")
    page.select_option("[name=model]", "tiny")
    count = wanted("tiny", calculator.numbers("tiny") | calculator.ASKED)["total"]
    assert page.inner_text("[data-result=total]") == f"{count:,}"
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function(
        "document.querySelector('[data-result=total]').textContent"
        " === '2,779,931,837,184'"
    )


def test_the_export_is_small_json():
    data = calculator.exported()
    assert len(data) < 50_000
    assert set(json.loads(data)["models"]) == set(calculator.MODELS)
