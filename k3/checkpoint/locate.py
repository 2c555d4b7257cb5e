"""Where a model's files are: a local directory, or the model in the package."""

import os
from importlib import resources
from pathlib import Path

from k3.errors import CheckpointError

BUILT_IN = ("tiny",)


def locate(name: str | os.PathLike[str]) -> Path:
    """Return the directory of a MODEL argument: a path, or the built-in "tiny"."""
    text = os.fspath(name)
    if text in BUILT_IN and not Path(text).is_dir():
        return _built_in(text)
    path = Path(text).expanduser()
    if text and path.is_dir():
        return path
    if text and path.exists():
        raise CheckpointError(
            f"a model is a directory that holds config.json: got the file {path}; "
            "pass its directory"
        )
    raise CheckpointError(
        f"no directory {text!r}: k3 reads local directories and no hub; pass a "
        f"directory that holds config.json, or the built-in {BUILT_IN[0]}"
    )


def _built_in(name: str) -> Path:
    """Return the directory of a model shipped inside the package."""
    path = Path(str(resources.files("k3"))) / "assets" / name
    if not (path / "config.json").is_file():
        raise CheckpointError(
            f"the built-in model {name} is not in this installation ({path} has no "
            "config.json): install k3 again, or pass a directory"
        )
    return path
