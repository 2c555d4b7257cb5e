"""The drawing, the table and the data of a graph; lemmas are proved theorems."""

import json
import re

import pytest

from k3.errors import RequestError
from k3.graph import catalogue
from k3.reader import theorems
from k3.reader.widgets import graph_pane


def test_lemmas_are_proved_and_their_labels_stand_in_a_graph():
    labels = {node.label for make in catalogue.values() for node in make().nodes}
    labels |= {n.label for b in graph_pane._of_widgets().values() for n in b.nodes}
    for label, name in graph_pane.LEMMAS.items():
        assert theorems.fresh(name), name
        assert label in labels, label
    assert set(graph_pane.LEMMAS.values()) <= set(theorems.proved())


def test_an_element_holds_graph_values_and_table():
    text = graph_pane.element("kda_update")
    data = json.loads(text.partition('json">')[2].partition("</script>")[0])
    count = len(catalogue["kda_update"]().nodes)
    assert len(data["graph"]["nodes"]) == count
    assert len(re.findall(r'<g class="node', text)) == count
    assert text.count('<th scope="row">') == count
    assert data["lemmas"]["S_next"] == "kda.update_is_affine"
    assert text.count('tabindex="0"') == 3


def test_a_shape_stands_once_where_the_edges_of_a_node_start():
    block = catalogue["kda_update"]()
    text = graph_pane.svg(block, "kda_update")
    read = {a for args in graph_pane.layout.operands(block.nodes) for a in args}
    edges = text.partition('<g class="edges"')[2].partition("</g>")[0]
    assert edges.count("<text") == len(read)


def test_a_graph_of_many_nodes_is_a_table_alone():
    most = graph_pane.MOST_NODES
    name = next(n for n, make in catalogue.items() if len(make().nodes) > most)
    text = graph_pane.element(name)
    assert "too many to draw" in text
    assert "<svg" not in text
    assert "<script" not in text


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("self_attention_res_norm", "attention_res_norm"),
        ("model.embed_tokens", "model.embed_tokens"),
        ("a.routed_expert_down_proj", "expert_down_proj"),
        ("x" * 30, "x" * 18),
    ],
)
def test_what_a_node_shows_is_a_part_of_its_name(name, shown):
    assert graph_pane._cut(name) == shown


def test_an_unknown_graph_is_refused():
    with pytest.raises(RequestError, match=r"a graph must be one of .*: got 'none'"):
        graph_pane.element("none")
