"""Nodes keep apart, edges run down, and long ones pass beside what they skip."""

import itertools

import pytest

from k3.graph import catalogue
from k3.reader.widgets import layout

NAMES = ["kda_update", "attn_res", "splice", "moe"]


def placed(name):
    block = catalogue[name]()
    return block, layout.lay_out(block)


@pytest.mark.parametrize("name", NAMES)
def test_nodes_of_a_layer_keep_apart(name):
    _, found = placed(name)
    for (x, y), (u, v) in itertools.combinations(found.places, 2):
        assert y != v or abs(x - u) >= layout.WIDTH + layout.GAP - 1e-6
    for x, y in found.places:
        assert layout.WIDTH / 2 <= x <= found.width - layout.WIDTH / 2
        assert y + layout.HEIGHT / 2 <= found.height


@pytest.mark.parametrize("name", NAMES)
def test_every_operand_has_an_edge_that_runs_down(name):
    block, found = placed(name)
    above = layout.operands(block.nodes)
    wanted = {(a, i) for i, args in enumerate(above) for a in args}
    assert {(a, i) for a, i, _ in found.edges} == wanted
    for a, i, between in found.edges:
        heights = [y for _, y in (found.places[a], *between, found.places[i])]
        assert heights == sorted(set(heights))


@pytest.mark.parametrize("name", NAMES)
def test_an_edge_passes_beside_the_nodes_that_it_skips(name):
    _, found = placed(name)
    for _, _, between in found.edges:
        for x, y in between:
            beside = [u for u, v in found.places if v == y]
            assert all(abs(x - u) >= layout.WIDTH / 2 for u in beside)


def test_places_are_the_nearest_in_order():
    # Both want 0: they meet in the middle, half a distance to each side.
    size = layout.WIDTH + layout.GAP
    assert layout._apart([0, 1], [0.0, 0.0], 2) == [-size / 2, size / 2]
    assert layout._apart([0, 1], [0.0, 900.0], 2) == [0.0, 900.0]
