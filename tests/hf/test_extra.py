"""Without transformers the import says what to install."""

import subprocess
import sys

import pytest

from k3.errors import RequestError
from k3.hf import extra


def test_a_missing_transformers_is_one_line_with_the_command(monkeypatch):
    monkeypatch.setattr(extra.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RequestError) as caught:
        extra.check()
    assert str(caught.value) == "k3.hf needs the hf extra: pip install 'k3[hf]'"


def test_the_import_asks_first():
    code = (
        "import importlib.util as u; f = u.find_spec;"
        "u.find_spec = lambda n, p=None: None if n == 'transformers' else f(n, p);"
        "import k3.hf"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith("k3.hf needs the hf extra: pip install 'k3[hf]'")
