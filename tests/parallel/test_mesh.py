"""The mesh as a value: what it reads, refuses, and where ranks lie."""

import pytest
import small

from k3.errors import ConfigError, RequestError
from k3.parallel import Mesh
from k3.parallel.mesh import AXES


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", Mesh()),
        ("data=2", Mesh(data=2)),
        (
            "pipeline=2, data=3,context=4,expert=5",
            Mesh(data=3, pipeline=2, expert=5, context=4),
        ),
    ],
)
def test_a_mesh_is_read_from_text_and_written_as_it_is_read(text, want):
    assert Mesh.of(text) == want
    assert Mesh.of(str(want)) == want


@pytest.mark.parametrize(
    "text",
    ["data", "data=", "data=-1", "data=2=3", "rows=2", "data=1.5", "data=2,data=2"],
)
def test_text_that_is_no_mesh_is_refused(text):
    with pytest.raises(RequestError, match="parallel names axes once each, such as"):
        Mesh.of(text)


@pytest.mark.parametrize("text", ["data=0", "pipeline=00"])
def test_an_axis_without_ranks_is_refused(text):
    with pytest.raises(ConfigError, match="whole number of at least 1: got 0"):
        Mesh.of(text)
    with pytest.raises(ConfigError, match=r"data must be a whole number.*got True"):
        Mesh(data=True)


def test_places_number_all_ranks_once_and_the_last_axis_is_fastest():
    mesh = Mesh(data=3, pipeline=2, expert=5, context=4)
    places = [mesh.place(rank) for rank in range(mesh.ranks)]
    assert len({tuple(p.items()) for p in places}) == mesh.ranks == 120
    assert [p["context"] for p in places[:5]] == [0, 1, 2, 3, 0]
    for rank, place in enumerate(places):
        number = 0
        for name, size in zip(AXES, mesh.shape, strict=True):
            number = number * size + place[name]
        assert number == rank


def test_rows_are_shared_by_pipeline_and_context_alone():
    mesh = Mesh(data=3, pipeline=2, expert=5, context=4)
    readers: dict[int, int] = {}
    for rank in range(mesh.ranks):
        index = mesh.rows_index(rank)
        readers[index] = readers.get(index, 0) + 1
    assert readers == dict.fromkeys(range(15), 8)


def test_a_mesh_that_does_not_fit_says_every_reason():
    config = small.config().text
    mesh = Mesh(pipeline=8, expert=2)
    with pytest.raises(ConfigError) as caught:
        mesh.check(config, 4)
    said = str(caught.value)
    assert "= 16 ranks of 4; start 16" in said
    assert "expert must divide num_experts: got 2 for 11" in said
    assert "pipeline must be at most num_hidden_layers: got 8 for 7" in said
    assert Mesh(data=2).check(config, 2) == Mesh(data=2)
