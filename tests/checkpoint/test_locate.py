"""MODEL arguments: directories and the built-in model, never a hub."""

import pytest

from k3.checkpoint import locate
from k3.errors import CheckpointError


def test_a_directory_is_itself(tmp_path):
    assert locate.locate(tmp_path) == tmp_path
    assert locate.locate(str(tmp_path)) == tmp_path


@pytest.mark.parametrize("name", ["someone/K3", "nowhere", ""])
def test_names_of_hubs_are_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=r"no hub; pass a directory.*tiny"):
        locate.locate(name)


def test_a_file_is_refused(tmp_path):
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(CheckpointError, match="pass its directory"):
        locate.locate(tmp_path / "model.safetensors")


def test_the_built_in_model_is_in_the_package(tmp_path, monkeypatch):
    package = tmp_path / "package"
    monkeypatch.setattr(locate.resources, "files", lambda name: package)
    with pytest.raises(CheckpointError, match="install k3 again"):
        locate.locate("tiny")
    (package / "assets" / "tiny").mkdir(parents=True)
    (package / "assets" / "tiny" / "config.json").touch()
    assert locate.locate("tiny") == package / "assets" / "tiny"
