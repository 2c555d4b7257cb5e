"""The pytest plug-in, in a pytest of its own."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUITE = """
from k3.kernels import norm, situ

def test_right(k3_situ):
    k3_situ.check(situ.situ, dtype="bfloat16", seed=2, exact=True)

def test_wrong(k3_situ):
    k3_situ.check(lambda gate, up, beta, linear: situ.situ(up, gate, beta, linear))

def test_loose(k3_rms_norm):
    k3_rms_norm.check(lambda x, weight, eps: x * 0, tolerance=2.0)

def test_vectors(k3_kda_chunk):
    assert k3_kda_chunk.inputs["q"].shape == (35, 3, 5)
    assert k3_kda_chunk.expected["final"].shape == (3, 4, 5)
"""


def test_fixtures_in_a_suite(tmp_path):
    (tmp_path / "test_port.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-p", "k3.testing"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--rootdir", str(tmp_path)],
        cwd=tmp_path,
        # Nobody else's plug-in; ours by the name of its module.
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert "equal after exchanging gate and up" in done.stdout


def test_the_plug_in_is_registered_and_light():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["entry-points"]["pytest11"] == {
        "k3-operators": "k3.testing"
    }
    code = "import k3.testing, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n"
