"""The Triton kernels in Triton's interpreter on the CPU, and compiled for three cards.

Triton is of the extra gpu: `pip install 'triton>=3.5'`, then `make slow`.
"""

import importlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from small import gap

from k3.kernels import attn_res, choose, moe, mx, situ

ROOT = Path(__file__).parents[3]
CAPS = (4.0, 25.0)
TOL = {torch.float32: 1e-5, torch.bfloat16: 1e-2}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("triton") is None,
        reason="needs Triton, which no CPU build of torch brings: pip install triton",
    ),
]


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    """Kernels are interpreted where the variable is set when they are imported."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")


def kernel(name):
    return importlib.import_module(f"k3.kernels.triton.{name}")


def agree(found, wanted, tol):
    for got, want in zip(found, wanted, strict=True):
        assert got.shape == want.shape
        assert gap(got, want) <= tol


def both(ours, torchs, leaves):
    """Values and gradients of both forms of the same leaves."""
    results = []
    for form in (ours, torchs):
        with choose.use("torch"):
            y = form(*leaves)
        dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(
            y.dtype
        )
        results.append([y, *torch.autograd.grad(y, leaves, dy)])
    return results


@pytest.mark.parametrize("dtype", TOL)
@pytest.mark.parametrize("shape", [(1,), (7, 333), (3, 1024)])
def test_situ(poisoned, dtype, shape):
    leaves = [torch.randn(shape).mul(3).to(dtype).requires_grad_() for _ in range(2)]
    ours, torchs = (
        lambda g, u, f=f: f(g, u, *CAPS) for f in (kernel("situ").situ, situ.situ)
    )
    agree(*both(ours, torchs, leaves), TOL[dtype])


def test_situ_keeps_the_leading_bits_near_zero(poisoned):
    x = torch.logspace(-30, 2, 300).requires_grad_()
    y = kernel("situ").situ(x, torch.full_like(x, 25.0), *CAPS)
    want = situ.situ(x.double(), torch.full_like(x, 25.0).double(), *CAPS)
    assert ((y - want) / want).abs().max() < 1e-6


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 5), (17, 7, 26), (33, 4, 100)])
def test_attn_res(poisoned, shape, running):
    n, S, D = shape
    made = [torch.randn(n, 2, S, D), torch.rand(n, 2, S), torch.randn(D)]
    made += [torch.randn(n, 2, D)] if running else []
    leaves = [x.requires_grad_() for x in made]

    def form(mix):
        return lambda b, s, q, p=None: mix(b, s, p, q, 1e-5)

    ours, torchs = form(kernel("attn_res").mix), form(attn_res.mix)
    agree(*both(ours, torchs, leaves), 5e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_code_and_scale_is_decoded_exactly(poisoned):
    """One row per scale byte, its 32 codes both ways round."""
    codes = torch.arange(16, dtype=torch.uint8)
    packed = (codes | codes.flip(0) << 4).expand(256, 16).contiguous()
    scale = torch.arange(256, dtype=torch.uint8)[:, None]
    found = kernel("mx").product(torch.eye(32), packed, scale).T
    want = mx.decode(packed, scale, torch.float32)
    # 0 times infinity or NaN makes whole rows NaN: those hold no other news.
    real = want.isfinite().all(-1)
    assert torch.equal(found[real], want[real])
    assert not found[~real].isfinite().any()


@pytest.mark.parametrize("dtype", TOL)
@pytest.mark.parametrize("shape", [(1, 7, 32), (5, 70, 96), (20, 33, 160), (2, 0, 64)])
def test_mx_product(poisoned, dtype, shape):
    B, rows, columns = shape
    packed, scale = mx.encode(torch.randn(rows, columns)) if rows else mx_empty(columns)
    x = torch.randn(B, columns).to(dtype)
    want = F.linear(x.double(), mx.decode(packed, scale, torch.float64))
    got = kernel("mx").product(x, packed, scale)
    assert got.dtype == dtype
    agree([got], [want], TOL[dtype])


def mx_empty(columns):
    sizes = columns // 2, columns // mx.GROUP
    return [torch.empty(0, n, dtype=torch.uint8) for n in sizes]


# Tokens, chosen, experts, latent, hidden: one tile or several an expert, odd if dense.
SIZES = [(1, 2, 5, 64, 32), (7, 3, 11, 96, 160), (70, 2, 2, 32, 64), (0, 2, 3, 32, 32)]


def chosen(T, k, E):
    index = torch.stack([torch.randperm(E)[:k] for _ in range(T)]) if T else None
    return torch.zeros(0, k, dtype=torch.int64) if index is None else index


@pytest.mark.parametrize("dtype", TOL)
@pytest.mark.parametrize("sizes", [*SIZES, (9, 2, 4, 37, 21)])
def test_experts(poisoned, dtype, sizes):
    """No further from float64 than three times what PyTorch's form is."""
    T, k, E, L, wide = sizes
    z, index, weights = torch.randn(T, L).to(dtype), chosen(T, k, E), torch.rand(T, k)
    shapes = {"w1": (wide, L), "w2": (L, wide), "w3": (wide, L)}
    stacks = {n: torch.randn(E, *s).mul(0.2).to(dtype) for n, s in shapes.items()}
    kinds = [stacks]
    if L % mx.GROUP == wide % mx.GROUP == 0:
        packed = {n: mx.encode(w) for n, w in stacks.items()}
        kinds = [{n: p for n, (p, _) in packed.items()}]
        kinds[0] |= {n.replace("w", "s"): s for n, (_, s) in packed.items()}
        stacks = {n: mx.decode(*p, dtype) for n, p in packed.items()}
        kinds.append(stacks)

    def by_torch(to):
        def expert(e, x):
            w1, w2, w3 = (stacks[n][e].to(to) for n in ("w1", "w2", "w3"))
            return F.linear(situ.situ(F.linear(x, w1), F.linear(x, w3), *CAPS), w2)

        with choose.use("torch"):
            return moe.combine(z.to(to), index, weights.to(to), expert)

    want = by_torch(torch.float64)
    allowed = max(3 * gap(by_torch(dtype).float(), want), 1e-6) if T else 0.0
    if dtype == torch.float32:
        allowed = 1e-5
    for kind in kinds:
        got = kernel("experts").combine(z, index, weights, kind, CAPS)
        assert got.dtype == torch.float32
        agree([got], [want], allowed)


def test_groups_cover_every_assignment_once():
    index = torch.tensor([[0, 3], [3, 1], [3, 0], [3, 1], [3, 0]])
    order, first, stop, expert = kernel("experts").groups(index, 6, 2)
    seen = []
    for a, b, e in zip(first.tolist(), stop.tolist(), expert.tolist(), strict=True):
        rows = order[a : min(a + 2, b)] if a < b else order[:0]
        assert (index.flatten()[rows] == e).all()
        seen += rows.tolist()
    assert sorted(seen) == list(range(10))


def test_the_benchmark_runs_to_its_end(tmp_path):
    table = tmp_path / "table.md"
    command = [sys.executable, "benchmarks/gpu.py", "--interpret", "--output", table]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = table.read_text().splitlines()
    assert sum("(triton)" in line for line in lines) == 15
    assert sum("left out" in line for line in lines) == 5
    assert "differs" not in table.read_text()


@pytest.mark.parametrize("arch", [80, 90, 100])
def test_compiles_for_a_card_that_is_not_there(arch, tmp_path):
    environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path)}
    del environment["TRITON_INTERPRET"]
    script = Path(__file__).with_name("compiled.py")
    done = subprocess.run(
        [sys.executable, script, str(arch)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) == 16
