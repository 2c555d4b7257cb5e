"""A run names its kernels, and refuses what no machine can time."""

import pytest
import small

from k3.bench import Setting, floors, run
from k3.bench.run import kernels
from k3.errors import RequestError
from k3.kernels import choose


def test_the_kernels_that_run_are_named():
    with choose.use("torch"):
        assert kernels() == "torch"
    assert kernels().startswith("native (") == choose.ready()


def test_only_a_cpu_is_timed():
    model = small.model().to("meta")
    with pytest.raises(RequestError, match="times a CPU: the model is on meta"):
        run(model, Setting(), name="small")


def test_threads_are_given_back(monkeypatch):
    import torch

    # How fast the machine is does not matter here.
    monkeypatch.setattr(floors, "READ_ROUNDS", 1)
    monkeypatch.setattr(floors, "PRODUCT_ROUNDS", 1)
    before = torch.get_num_threads()
    setting = Setting(tokens=4, context=3, steps=1, batches=(2,), rounds=1, threads=2)
    found = run(small.model(), setting, name="a/small")
    assert torch.get_num_threads() == before
    assert found.settings["model"] == "small"
    assert [each.unit for each in found.figures] == ["tok/s", "s", "tok/s"]
