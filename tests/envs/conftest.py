"""Sandboxes for the tests of environments, from one store."""

import os
import shutil

import pytest

from k3.envs.local import LocalBackend
from k3.envs.store import Store


@pytest.fixture(scope="session")
def boxes(tmp_path_factory):
    if os.geteuid() and not shutil.which("bwrap"):
        pytest.skip("no bubblewrap, and only root may install it: tools/debian.sh")
    return LocalBackend(Store(tmp_path_factory.mktemp("store")))
