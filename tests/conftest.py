"""One thread, shared test modules on the path, and memory that starts as NaN."""

import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import jaxtyping
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
import on_ranks

torch.set_num_threads(1)
# A busy machine is no fault of the code: time is measured in benchmarks/.
hypothesis.settings.register_profile("k3", deadline=None)
hypothesis.settings.load_profile("k3")


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Run without the shape checks of the tests, as users do and at their speed."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def poisoned() -> Iterator[None]:
    """Fill what torch leaves uninitialized with NaN, so that reading it shows."""
    before = torch.are_deterministic_algorithms_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    assert torch.empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(before)
    torch.utils.deterministic.fill_uninitialized_memory = filled


@pytest.fixture(scope="session")
def two() -> Iterator[on_ranks.Group]:
    """two(mesh, function, *args): [what rank 0 returned, what rank 1 returned]."""
    group = on_ranks.Group(2)
    yield group
    group.stop()


@pytest.fixture(scope="session")
def four() -> Iterator[on_ranks.Group]:
    """The same with four ranks."""
    group = on_ranks.Group(4)
    yield group
    group.stop()
