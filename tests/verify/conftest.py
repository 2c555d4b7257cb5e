"""fla's naive kernels, loaded by their path: the package itself asks for Triton."""

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def naive():
    found = importlib.util.find_spec("fla")
    assert found is not None, "the extra test holds fla-core"
    path = Path(found.submodule_search_locations[0]) / "ops/kda/naive.py"
    spec = importlib.util.spec_from_file_location("fla_naive_kda", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
