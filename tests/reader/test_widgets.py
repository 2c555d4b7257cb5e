"""Graph = equations = the Python that is copied, on many states; what is refused."""

import json
from fractions import Fraction

import numpy as np
import pytest

from k3.errors import RequestError
from k3.reader import widgets
from k3.reader.widgets import control
from k3.reader.widgets import widget as one
from k3.spec import mx

STATES = 24


def states(name):
    """The start, then random ones, about half of them on steps, where ties are."""
    found = widgets.get(name)
    rng = np.random.default_rng(5)
    drawn = [one.draw(found, rng) for _ in range(STATES - 1)]
    return [one.accept(found, state) for state in (found.default, *drawn)]


def far(ours, theirs):
    """The largest difference, relative beyond 1; undefined numbers must be both."""
    if isinstance(theirs, list):
        pairs = zip(ours, theirs, strict=True)
        return max((far(a, b) for a, b in pairs), default=0)
    if theirs is None:
        return 0 if ours is None else 1
    return abs(ours - theirs) / max(1, abs(theirs))


@pytest.mark.parametrize("name", widgets.names())
def test_graph_equations_and_copied_python_agree(name):
    found = widgets.get(name)
    space = {}
    exec(one.code(found), space)
    copied = space[found.python.__name__]
    for state in states(name):
        graph, python = (
            through(found, state) for through in (one.through_graph, widgets_evaluate)
        )
        assert graph.keys() == python.keys() >= found.names.keys()
        assert max(far(graph[key], python[key]) for key in python) < 1e-12, state
        with np.errstate(all="ignore"):
            again = {key: control.plain(x) for key, x in copied(**state).items()}
        assert again == python


def widgets_evaluate(found, state):
    return widgets.evaluate(found.name, state)


@pytest.mark.parametrize("name", widgets.names())
def test_element_is_whole_and_safe(name):
    text = widgets.element(name)
    data = text.partition('json">')[2].partition("</script>")[0]
    assert json.loads(data) == json.loads(json.dumps(one.export(widgets.get(name))))
    assert text.count("<script") == 1
    assert "At the start" in text
    assert len(text) < 60_000


def test_the_articles_numbers_are_the_start():
    start = {n: widgets.evaluate(n, {}) for n in widgets.names()}
    assert start["situ"]["situ"] == pytest.approx(9.585417, abs=5e-7)
    assert start["situ"]["capped"] == pytest.approx(1.848469, abs=5e-7)
    assert start["kda-update"]["S_next"][0][0] == pytest.approx(7.4, abs=1e-6)
    assert start["router"]["weights"] == pytest.approx([3 / 7, 4 / 7])
    assert start["mopd-reward"]["reward"] == pytest.approx(2.169, abs=5e-4)
    assert start["mx-quantizer"]["value"][0] == 3
    assert start["overlap"]["acceptance"] == pytest.approx(0.7)
    assert start["prefix-cache"]["restored"] == 2560
    assert start["layer-schedule"]["final_sources"] == 9
    cache = start["mla-cache"]
    assert (cache["row_scalars"], cache["full_scalars"]) == (576, 30720)


def test_all_fifteen_ties_of_the_elements_go_to_the_even_code():
    limits = [(a + b) / 2 for a, b in zip(mx.E2M1, mx.E2M1[1:], strict=False)]
    ties = [0.0, *(float(sign * limit) for limit in limits for sign in (1, -1))]
    assert len(ties) == 15
    found = widgets.get("mx-quantizer")
    x = [*ties, *([6.0] * 17)]
    state = {"x": x, "rule": "ceil"}
    graph = one.through_graph(found, state)
    assert graph["scale"] == 1
    even = [mx.encode_e2m1(Fraction(tie)) for tie in ties]
    assert graph["nibble"][:15] == even
    assert all(code % 2 == 0 for code in even)


REFUSED = {
    "unknown": ({"z": 1}, "no control z; it has gate"),
    "range": ({"gate": 99.0}, "gate must be between -12 and 12: got 99.0"),
    "kind": ({"gate": "2"}, 'numbers of the shape of 2.0: got "2"'),
    "truth": ({"gate": True}, "numbers of the shape"),
    "infinite": ({"gate": float("inf")}, "numbers of the shape"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_states_that_do_not_fit(case):
    state, message = REFUSED[case]
    with pytest.raises(RequestError, match=message):
        widgets.evaluate("situ", state)


def test_other_refusals():
    with pytest.raises(RequestError, match="a widget must be one of layer-schedule"):
        widgets.element("nothing")
    with pytest.raises(RequestError, match="rule must be one of ceil, floor"):
        widgets.evaluate("mx-quantizer", {"rule": "up"})
    with pytest.raises(RequestError, match="scores must be numbers of the shape"):
        widgets.evaluate("router", {"scores": [0.5]})
    with pytest.raises(RequestError, match="A must be between 1 and 4"):
        widgets.evaluate("router", {"A": 5})
    with pytest.raises(RequestError, match="A must be numbers of the shape of 2"):
        widgets.evaluate("router", {"A": 2.5})
