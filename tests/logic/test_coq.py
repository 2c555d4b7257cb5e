"""The four analysis axioms are theorems of Coq's real numbers, where coqc exists."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from k3.logic import analysis

FILE = Path(__file__).parents[2] / "coq" / "axioms.v"


def test_each_axiom_has_its_coq_theorem_and_nothing_is_admitted():
    text = FILE.read_text()
    names = re.findall(r"Theorem (\w+)", text)
    assert names == ["exp_add", "exp_tangent", "exp_log", "sqrt_square"]
    assert len(names) == len(analysis.AXIOMS)
    assert text.count("Qed.") == len(names)
    assert not re.search(r"Admitted|admit|Axiom|Parameter", text)


@pytest.mark.skipif(shutil.which("coqc") is None, reason="needs apt-get install coq")
def test_coq_accepts_the_axioms(tmp_path):
    copy = tmp_path / "axioms.v"
    copy.write_text(FILE.read_text())
    done = subprocess.run(["coqc", str(copy)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
