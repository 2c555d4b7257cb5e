"""Groups of processes: axes, who leads, who reads what."""

import groups_on_ranks
import pytest

from k3.errors import RequestError
from k3.parallel import Mesh, ranks


def test_two_ranks_talk_along_their_axis_alone(two):
    first, second = two(Mesh(expert=2), groups_on_ranks.sums)
    assert first == (
        {
            "pipeline": (1, 0, 0),
            "expert": (2, 0, 1),
            "data": (1, 0, 0),
            "context": (1, 0, 0),
            "trunk": (2, 0, 1),
            "replica": (1, 0, 0),
            "world": (2, 0, 1),
        },
        True,
        (0, 2),
    )
    assert second[0]["expert"] == (2, 1, 1)
    assert second[0]["data"] == (1, 0, 1)
    assert second[1:] == (False, (1, 2))


def test_one_rank_is_a_mesh_without_processes():
    with ranks.started(Mesh()) as alone:
        assert alone.leads
        assert alone.reader == (0, 1)
        assert alone.axis("trunk").size == 1
        assert alone.axis("trunk").group is None


def test_without_torchrun_two_ranks_are_refused(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    said = "needs 2 processes: got 1; start with torchrun --nproc-per-node 2 -m k3"
    with pytest.raises(RequestError, match=said), ranks.started(Mesh(data=2)):
        pass


@pytest.mark.slow
def test_four_ranks_lie_in_a_box(four):
    said = four(Mesh(pipeline=2, data=2), groups_on_ranks.sums)
    assert [s[0]["data"] for s in said] == [(2, 0, 1), (2, 1, 1), (2, 0, 5), (2, 1, 5)]
    assert [s[0]["pipeline"][2] for s in said] == [2, 4, 2, 4]
    assert [s[2] for s in said] == [(0, 2), (1, 2), (0, 2), (1, 2)]
