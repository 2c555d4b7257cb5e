"""k3 env: versions, and the command for each thing that is missing."""

import sys

from k3.cli import env
from k3.kernels import choose


def test_it_names_versions_and_threads(k3):
    found = k3("env")
    assert found.code == 0
    assert "torch" in found.out
    assert "threads" in found.out
    held = "stored" if choose.ready() else "widened"
    assert f"weights {held} where nothing is trained" in found.out


def test_json_has_every_extra(k3):
    value = k3("env", "--json").json
    assert {"vision", "train", "test", "dev"} <= set(value["extras"])
    assert value["packages"]["numpy"][0].isdigit()


def test_a_missing_extra_comes_with_its_command():
    required = [
        ("torch", None, "torch>=2"),
        ("no-such-package", "draw", "no-such-package>=3"),
        ("numpy", "draw", "numpy>=2"),
    ]
    assert env.extras(required) == {
        "draw": {
            "present": False,
            "missing": ["no-such-package>=3"],
            "install": f"{sys.executable} -m pip install 'no-such-package>=3'",
        }
    }


def test_versions_come_first(k3):
    words = [line.split()[0] for line in k3("env").out.splitlines()]
    assert words.index("torch") < words.index("threads")
    assert words[:2] == ["k3", "python"]
