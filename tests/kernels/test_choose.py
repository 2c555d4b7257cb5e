"""Which implementation runs: asked for, automatic, refused, and left to PyTorch."""

import os
import subprocess
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from k3.errors import ConfigError
from k3.kernels import choose
from k3.kernels.native import library, pages


class Wrapped(torch.Tensor):
    pass


def test_plain_tensors_on_the_cpu_run_natively():
    assert choose.native(torch.ones(2), torch.nn.Parameter(torch.ones(2)))
    assert choose.native(torch.ones(2, dtype=torch.bfloat16))
    assert not choose.native(torch.ones(2, dtype=torch.bfloat16), dtypes=choose.SINGLE)


@pytest.mark.parametrize(
    "x",
    [
        torch.ones(2, dtype=torch.float64),
        torch.ones(2, dtype=torch.float16),
        torch.ones(2, device="meta"),
        torch.ones(2).as_subclass(Wrapped),
    ],
    ids=["fp64", "fp16", "meta", "subclass"],
)
def test_what_is_not_plain_is_pytorchs(x):
    assert not choose.native(torch.ones(2), x)


def test_nothing_is_hidden_from_a_mode_or_a_transform():
    x, seen = torch.ones(2), []
    with FakeTensorMode():
        assert not choose.native(x)
    torch.func.vmap(lambda y: seen.append(choose.native(y)) or y)(torch.ones(3, 2))
    with torch.autograd.forward_ad.dual_level():
        seen.append(choose.native(x))
    assert seen == [False, False]
    assert choose.native(x)


def test_asking_for_an_implementation():
    with choose.use("torch"):
        assert choose.asked() == "torch"
        assert not choose.native(torch.ones(2))
        with choose.use("native"):
            assert choose.native(torch.ones(2))
        assert not choose.native(torch.ones(2))
    assert choose.native(torch.ones(2))


def test_what_is_no_implementation_is_refused():
    with pytest.raises(ConfigError, match=r"one of torch, native, fla: got cuda; ch"):
        choose.use("cuda").__enter__()


def test_native_asked_for_and_absent_is_an_error(monkeypatch):
    monkeypatch.setattr(library, "load", lambda: None)
    monkeypatch.setattr(library, "absent", lambda: "no compiler; install g++")
    with pytest.raises(ConfigError, match=r"needs the native kernels: no compiler; i"):
        choose.use("native").__enter__()


def test_fla_asked_for_without_cuda_is_an_error(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=r"fla needs a CUDA device and fla-core"):
        choose.use("fla").__enter__()


def test_a_level_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("K3_NATIVE_ISA", "mmx")
    library.level.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"portable.* on this processor: got mmx"):
            library.level()
    finally:
        library.level.cache_clear()


def test_env_says_which(monkeypatch):
    found = choose.lines()
    assert found["native"] == library.level()
    assert found["code"].startswith("in a large" if pages.own_code() else "in small")
    assert found["kernels"] == "automatic (native on a CPU)"
    monkeypatch.setattr(library, "level", lambda: None)
    monkeypatch.setattr(library, "absent", lambda: "no compiler; install g++")
    assert choose.lines()["native"] == "absent: no compiler; install g++"
    assert choose.lines()["kernels"] == "automatic (torch on a CPU)"


@pytest.fixture
def cuda(monkeypatch):
    """Tensors that say that they lie on CUDA, and the extra gpu, installed."""
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda x: True))
    monkeypatch.setattr(choose, "installed", lambda module: True)


def test_plain_tensors_on_cuda_run_in_triton_and_fla(cuda, monkeypatch):
    x = torch.ones(2)
    assert choose.triton(x, x.bfloat16())
    assert not choose.triton(x, x.bfloat16(), dtypes=choose.SINGLE)
    assert not choose.triton(x.double())
    assert not choose.triton(x.as_subclass(Wrapped))
    assert choose.fla(x, exact=False)
    assert not choose.fla(x, exact=True)
    assert not choose.fla(x.bfloat16(), exact=False)
    with FakeTensorMode():
        assert not choose.triton(x)
    for name in ("torch", "native"):
        with choose.use(name):
            assert not choose.triton(x)
            assert not choose.fla(x, exact=False)
    monkeypatch.setattr(choose, "installed", lambda module: False)
    assert not choose.triton(x)
    assert not choose.fla(x, exact=False)


def test_nothing_on_a_cpu_goes_to_cuda(monkeypatch):
    monkeypatch.setattr(choose, "installed", lambda module: True)
    assert not choose.triton(torch.ones(2))
    assert not choose.fla(torch.ones(2), exact=False)


def test_env_says_what_runs_on_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose.lines()["cuda"] == "absent: torch sees no CUDA device"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(choose, "installed", lambda module: module == "fla")
    monkeypatch.setattr(choose, "version", lambda package: "0.6.0")
    assert choose.lines()["cuda"] == "fla-core 0.6.0, no triton: k3[gpu]"


@pytest.mark.slow
def test_torch_compile_sees_one_operator():
    """In a process without shape checks, which a full graph cannot hold."""
    code = (
        "import torch\n"
        "from k3.kernels import kda\n"
        "names = []\n"
        "def backend(graph, _):\n"
        "    names.extend(str(n.target) for n in graph.graph.nodes)\n"
        "    return graph\n"
        "x = [torch.rand(9, 2, 3) for _ in range(4)] + [torch.rand(9, 2)]\n"
        "x[3] = -x[3]\n"
        "x = [y.requires_grad_() for y in (*x, torch.rand(1, 2, 3, 3))]\n"
        "f = lambda *x: kda.chunk(*x[:5], state=x[5], lens=(9,))\n"
        "for how in (backend, 'aot_eager'):\n"
        "    g = torch.compile(f, backend=how, fullgraph=True)\n"
        "    a, b = (torch.autograd.grad(y(*x)[0].sum(), x) for y in (f, g))\n"
        "    assert all(torch.equal(p, q) for p, q in zip(a, b))\n"
        "assert names.count('k3.kda.default') == 1, names\n"
    )
    environment = os.environ | {"JAXTYPING_DISABLE": "1"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
