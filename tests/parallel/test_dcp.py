"""Snapshots of many ranks: any number of them reads what any number has written."""

import dcp_on_ranks
import pytest
import torch
from safetensors.torch import save_file

from k3.errors import CheckpointError
from k3.parallel import Mesh, dcp
from k3.parallel.ranks import Ranks

WHOLE = torch.arange(35, dtype=torch.float32).view(7, 5)


def check(found):
    assert torch.equal(torch.cat([f["x"] for f in found]), WHOLE)
    for rank in found:
        assert float(rank["scalar"]) == 3
        assert "absent" not in rank


def test_two_ranks_write_and_two_or_one_read(two, tmp_path):
    folder = tmp_path / "snapshot"
    two(Mesh(data=2), dcp_on_ranks.save, str(folder))
    assert dcp.facts(folder) == {"step": 7}
    assert not list(tmp_path.glob(".*"))
    check(two(Mesh(data=2), dcp_on_ranks.load, str(folder)))
    check([dcp_on_ranks.load(Ranks(), folder)])
    everything = dcp.whole(folder)
    assert torch.equal(everything.pop("x"), WHOLE)
    assert sorted(everything) == ["scalar", "stage.0"]
    two(Mesh(pipeline=2), dcp_on_ranks.save, str(tmp_path / "stages"))
    first, second = two(Mesh(pipeline=2), dcp_on_ranks.load, str(tmp_path / "stages"))
    assert "stage.0" in first
    assert "stage.1" in second
    check([first])
    check(two(Mesh(data=2), dcp_on_ranks.load, str(tmp_path / "stages")))


def test_one_rank_writes_and_two_read_also_from_one_file(two, tmp_path):
    alone = Ranks()
    dcp_on_ranks.save(alone, tmp_path / "alone")
    check(two(Mesh(data=2), dcp_on_ranks.load, str(tmp_path / "alone")))
    file = tmp_path / "one.safetensors"
    save_file(dcp_on_ranks.tensors(alone), file, metadata={"facts": '{"step": 9}'})
    assert dcp.facts(file) == {"step": 9}
    check(two(Mesh(data=2), dcp_on_ranks.load, str(file)))
    check([dcp_on_ranks.load(alone, file)])


@pytest.mark.slow
def test_four_ranks_read_what_two_wrote(two, four, tmp_path):
    two(Mesh(data=2), dcp_on_ranks.save, str(tmp_path / "two"))
    check(four(Mesh(data=4), dcp_on_ranks.load, str(tmp_path / "two")))
    four(Mesh(data=2, expert=2), dcp_on_ranks.save, str(tmp_path / "four"))
    check(two(Mesh(data=2), dcp_on_ranks.load, str(tmp_path / "four")))


def test_what_is_cut_or_of_another_shape_is_refused(tmp_path):
    folder = tmp_path / "snapshot"
    dcp_on_ranks.save(Ranks(), folder)
    with pytest.raises(
        CheckpointError, match=r"x must have shape \(7, 4\): got \(7, 5\)"
    ):
        dcp.load(folder, {"x": torch.zeros(7, 4)})
    part = next(folder.glob("*.distcp"))
    part.write_bytes(part.read_bytes()[:40])
    with pytest.raises(CheckpointError, match="resuming needs a whole snapshot: got"):
        dcp.load(folder, {"x": torch.zeros(7, 5)})
    (folder / dcp.FACTS).write_text("[1]")
    with pytest.raises(CheckpointError, match=r"its facts are \[1\]"):
        dcp.facts(folder)
    with pytest.raises(CheckpointError, match="resuming needs a whole snapshot"):
        dcp.facts(tmp_path / "none.safetensors")
