import json

import numpy as np
import pytest

import k3.graph as graph
from k3.errors import ShapeError
from k3.graph import draw, json_form, render


@pytest.mark.parametrize("name", graph.catalogue)
def test_round_trip(name):
    block = graph.get(name)
    text = render.json(block)
    back = graph.load(text)
    assert render.json(back) == text
    sizes = draw.sizes(block)
    env = draw.draw(block, sizes, 5)
    one, other = graph.evaluate(block, env, sizes), graph.evaluate(back, env, sizes)
    assert one.keys() == other.keys()
    for output in one:
        np.testing.assert_array_equal(one[output], other[output])


def test_what_a_node_says():
    data = json.loads(graph.show("kda_update", "json"))
    assert data["schema"] == "k3.graph/1"
    assert data["name"] == "kda_update"
    assert data["says"].startswith("Eq. 1 for all heads")
    assert data["dims"] == ["H", "K", "V"]
    nodes = data["nodes"]
    assert [n["id"] for n in nodes] == list(range(len(nodes)))
    assert all(i < n["id"] for n in nodes for i in n["inputs"])
    node = nodes[data["outputs"]["S"]]
    assert node["op"] == "add"
    assert node["label"] == "S_next"
    assert node["shape"] == ["H", "K", "V"]
    assert node["line"].startswith("k3/graph/kda.py:")


def test_integers_and_exact_numbers():
    nodes = json.loads(graph.show("moe", "json"))["nodes"]
    (topk,) = [n for n in nodes if n["op"] == "topk"]
    assert (topk["dtype"], topk["domain"]) == ("int", "E")
    assert topk["attrs"] == {"k": "A"}
    assert topk["shape"] == ["A"]
    constants = {n["attrs"]["value"] for n in nodes if n["op"] == "constant"}
    assert constants == {"1/" + "1" + 20 * "0"}


def broken(change):
    data = json.loads(graph.show("expert", "json"))
    change(data)
    return json.dumps(data)


def node(data, op):
    return next(n for n in data["nodes"] if n["op"] == op)


BROKEN = {
    "not JSON": lambda: "{",
    "not a graph": lambda: "[]",
    "other schema": lambda: broken(lambda d: d.update(schema="k3.graph/2")),
    "unknown op": lambda: broken(lambda d: node(d, "tanh").update(op="eval")),
    "later operand": lambda: broken(lambda d: node(d, "tanh").update(inputs=[15])),
    "negative operand": lambda: broken(lambda d: node(d, "tanh").update(inputs=[-1])),
    "too many operands": lambda: broken(
        lambda d: node(d, "tanh").update(inputs=[0, 1])
    ),
    "missing attribute": lambda: broken(lambda d: node(d, "scale").update(attrs={})),
    "extra attribute": lambda: broken(lambda d: node(d, "tanh").update(attrs={"a": 1})),
    "claimed shape": lambda: broken(lambda d: node(d, "tanh").update(shape=["D"])),
    "label": lambda: broken(lambda d: node(d, "tanh").update(label="x; import os")),
    "line": lambda: broken(lambda d: node(d, "tanh").update(line="a\nimport os")),
    "no output": lambda: broken(lambda d: d.update(outputs={"y": 99})),
    "dimension": lambda: broken(
        lambda d: node(d, "input")["attrs"].update(shape=["f()"])
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_text_is_refused(name):
    with pytest.raises(ShapeError, match=r"must be JSON of schema|names, integers"):
        json_form.load(BROKEN[name]())


def test_types_are_checked_anew():
    def swap(data):
        weight = next(n for n in data["nodes"] if n["attrs"].get("name") == "x")
        weight["attrs"]["shape"] = weight["shape"] = ["E"]

    with pytest.raises(ShapeError, match="contract: axis z"):
        json_form.load(broken(swap))
