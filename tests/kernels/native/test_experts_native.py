"""Grouped experts natively against PyTorch's form: dense, MXFP4, many and few rows."""

import pytest
import torch
from small import gap

from k3.kernels import choose, moe, mx
from k3.kernels.native import experts as native
from k3.kernels.native import experts_training as training
from k3.kernels.situ import situ

E, CAPS = 11, (4.0, 25.0)
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 1.5e-2}


def draw(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(dtype)


def routing(n, k=3):
    generator = torch.Generator().manual_seed(n)
    index = torch.rand(n, E, generator=generator).argsort(-1)[:, :k]
    return index, draw(n, k, seed=n).softmax(-1)


def stacks(L, F, dtype):
    return {
        "w1": draw(E, F, L, seed=1, dtype=dtype) * L**-0.5,
        "w2": draw(E, L, F, seed=2, dtype=dtype) * F**-0.5,
        "w3": draw(E, F, L, seed=3, dtype=dtype) * L**-0.5,
    }


def packed(dense):
    made, decoded = {}, {}
    for name, w in dense.items():
        made[name], made["s" + name[1]] = mx.encode(w.float())
        decoded[name] = mx.decode(made[name], made["s" + name[1]], w.dtype)
    return made, decoded


def twin(z, index, weights, dense):
    """PyTorch's form, expert by expert."""

    def expert(e, x):
        w1, w2, w3 = (dense[name][e].T for name in ("w1", "w2", "w3"))
        return situ(x @ w1, x @ w3, *CAPS) @ w2

    with choose.use("torch"):
        return moe.combine(z, index, weights, expert)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", [1, 5, 12, 17, 100, 200])
def test_dense_experts_are_pytorchs(poisoned, dtype, n):
    dense, z = stacks(37, 14, dtype), draw(n, 37, dtype=dtype)
    got = native.combine(z, *routing(n), dense, CAPS)
    assert got.dtype == torch.float32
    assert gap(got, twin(z, *routing(n), dense)) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", [1, 5, 12, 17, 100])
def test_packed_experts_are_those_of_decoded_weights(poisoned, dtype, n):
    made, decoded = packed(stacks(64, 96, dtype))
    z = draw(n, 64, dtype=dtype)
    got = native.combine(z, *routing(n), made, CAPS)
    assert gap(got, twin(z, *routing(n), decoded)) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", [5, 40, 200])
@pytest.mark.parametrize("form", ["dense", "packed"])
def test_other_rows_do_not_change_the_bits_of_one(dtype, n, form):
    dense = stacks(64, 32, dtype)
    held = packed(dense)[0] if form == "packed" else dense
    z, (index, weights) = draw(n, 64, dtype=dtype), routing(n)
    whole = native.combine(z, index, weights, held, CAPS)
    other = z.flip(0).clone(), index.flip(0).clone(), weights.flip(0).clone()
    for x, y in zip(other, (z, index, weights), strict=True):
        x[0] = y[0]
    assert torch.equal(native.combine(*other, held, CAPS)[0], whole[0])


@pytest.mark.parametrize("form", ["dense", "packed"])
def test_many_rows_in_bf16_are_rounded_where_few_are(form):
    """The order of a sum seldom shows in what is left of it in bf16."""
    dense = stacks(64, 32, torch.bfloat16)
    held = packed(dense)[0] if form == "packed" else dense
    z, (index, weights) = draw(200, 64, dtype=torch.bfloat16), routing(200)
    many = native.combine(z, index, weights, held, CAPS)
    few = [
        native.combine(*(x[i : i + 8] for x in (z, index, weights)), held, CAPS)
        for i in range(0, 200, 8)
    ]
    assert (many != torch.cat(few)).float().mean() < 0.02


def test_more_rows_than_are_run_at_once():
    dense, n = stacks(5, 3, torch.float32), 1500
    z, (index, weights) = draw(n, 5), routing(n)
    got = native.combine(z, index, weights, dense, CAPS)
    assert gap(got, twin(z, index, weights, dense)) < 2e-6


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("form", ["dense", "packed"])
def test_many_rows_have_the_same_bits_for_any_number_of_threads(poisoned, form, dtype):
    """One expert has more rows than a task takes."""
    dense = stacks(64, 96, dtype)
    z, (index, weights) = draw(300, 64, dtype=dtype), routing(300)
    index[:, 0] = 4
    index[:, 1:] = torch.where(index[:, 1:] == 4, 5, index[:, 1:])
    held = packed(dense)[0] if form == "packed" else dense
    decoded = packed(dense)[1] if form == "packed" else dense
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(native.combine(z, index, weights, held, CAPS))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(found[0], other) for other in found)
    assert gap(found[0], twin(z, index, weights, decoded)) < TOLERANCE[dtype]


def test_no_rows():
    dense = stacks(8, 4, torch.float32)
    assert native.combine(
        draw(0, 8), *(x[:0] for x in routing(1)), dense, CAPS
    ).shape == (0, 8)


@pytest.mark.parametrize("n", [1, 9, 40])
def test_gradients_are_pytorchs(poisoned, n):
    z, (index, weights), dy = draw(n, 37), routing(n), draw(n, 37, seed=7)
    results = []
    for run in (training.combine, twin_of_stacks):
        leaves = [x.clone().requires_grad_() for x in (z, weights)]
        dense = {
            k: w.requires_grad_() for k, w in stacks(37, 14, torch.float32).items()
        }
        y = run(leaves[0], index, leaves[1], dense, CAPS)
        leaves += dense.values()
        results.append([y, *torch.autograd.grad(y, leaves, dy)])
    for got, want in zip(*results, strict=True):
        assert gap(got, want) < 3e-6


def twin_of_stacks(z, index, weights, dense, caps):
    return twin(z, index, weights, dense)


def test_gradients_of_no_rows_are_zero():
    dense = {k: w.requires_grad_() for k, w in stacks(8, 4, torch.float32).items()}
    index, weights = routing(0)
    y = training.combine(draw(0, 8), index, weights, dense, CAPS)
    grads = torch.autograd.grad(y.sum(), list(dense.values()))
    assert y.shape == (0, 8)
    assert not any(x.any() for x in grads)


def test_another_default_dtype_changes_no_gradient():
    index, weights = routing(9)
    z, dy, dense = draw(9, 37), draw(9, 37, seed=7), stacks(37, 14, torch.float32)
    leaves = [x.requires_grad_() for x in (z, *dense.values())]
    results = []
    for dtype in (torch.float32, torch.float64):
        torch.set_default_dtype(dtype)
        try:
            y = training.combine(z, index, weights, dense, CAPS)
            results.append(torch.autograd.grad(y, leaves, dy))
        finally:
            torch.set_default_dtype(torch.float32)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
