"""Each primitive's value against numpy written out, on floats and on fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from k3.errors import ShapeError
from k3.graph import primitives as p
from k3.graph.dims import plus, times
from k3.graph.evaluate import RULES, evaluate
from k3.graph.term import Block, constant, spread

rng = np.random.default_rng(3)
A, B = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
V, W = rng.normal(size=3), rng.normal(size=(3, 4))
I = np.array([2, 0, 2, 1])  # noqa: E741
a, b = p.real("a", "H, K"), p.real("b", "H, K")
v, w = p.real("v", "K"), p.real("w", "K, V")
i = p.integer("i", "A", "K")
SIZES = {"H": 2, "K": 3}
ENV = {"a": A, "b": B, "v": V, "w": W, "i": I}


def unit(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def erf_gelu(x):
    return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def tanh_gelu(x):
    inner = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return x / 2 * (1 + inner)


REAL = {
    "add": (a + b, A + B),
    "sub": (a - b, A - B),
    "mul": (a * b, A * B),
    "div": (a / b, A / B),
    "neg": (-a, -A),
    "scale": (p.scale(a, 0.5), A / 2),
    "numbers": (2 + 3 * a / 4 - 1, 2 + 3 * A / 4 - 1),
    "from": (1 - a, 1 - A),
    "exp": (p.exp(a), np.exp(A)),
    "log": (p.log(p.exp(a)), A),
    "sqrt": (p.sqrt(a * a), abs(A)),
    "tanh": (p.tanh(a), np.tanh(A)),
    "sigmoid": (p.sigmoid(a), 1 / (1 + np.exp(-A))),
    "silu": (p.silu(a), A / (1 + np.exp(-A))),
    "softplus": (p.softplus(a), np.log1p(np.exp(A))),
    "gelu erf": (p.gelu(a, "erf"), erf_gelu(A)),
    "gelu tanh": (p.gelu(a, "tanh"), tanh_gelu(A)),
    "sin": (p.sin(a), np.sin(A)),
    "cos": (p.cos(a), np.cos(A)),
    "softmax": (p.softmax(a), np.exp(A) / np.exp(A).sum(-1, keepdims=True)),
    "unit_rms": (p.unit_rms(a), unit(A)),
    "rms_norm": (p.rms_norm(a, v), unit(A) * V),
    "l2_norm": (p.l2_norm(a), A / np.sqrt((A * A).sum(-1, keepdims=True) + 1e-6)),
    "contract": (p.contract("hk,kv->vh", a, w), (A @ W).T),
    "linear": (p.linear(a, v), A @ V),
    "linear rows": (p.linear(a, p.permute(w, 1, 0)), W.T @ A.T),
    "matmul": (p.matmul(a, w), A @ W),
    "outer": (p.outer(v, a), np.multiply.outer(V, A)),
    "permute": (p.permute(a, 1, 0), A.T),
    "reshape": (p.reshape(a, times("H", "K")), A.ravel()),
    "flatten": (p.flatten(a), A.ravel()),
    "broadcast": (spread(v, ("H", "K"), 1), np.stack([V, V])),
    "concat": (p.concat(a, b, axis=1), np.concatenate([A, B], 1)),
    "append": (p.append(a, v), np.concatenate([A, V[None]])),
    "slice": (p.cut(p.concat(v, v), "K", "K"), V),
    "pick": (p.pick(p.stack(a, b), 1), B),
    "stack": (p.stack(a, b, axis=2), np.stack([A, B], 2)),
    "flip": (p.flip(a, 1), A[:, ::-1]),
    "sum": (p.total(a, 0, 1), A.sum()),
    "mean": (p.mean(a, 1), A.mean(1)),
    "gather": (p.gather(a, i, 1), A[:, I]),
    "one_hot": (p.one_hot(i), np.eye(3)[I]),
    "hot": (p.contract("ak,k->a", p.one_hot(i), v), V[I]),
    "times_size": (p.size("K") * a, 3 * A),
    "size": (p.size(plus("H", "K")), 5.0),
    "positions": (p.positions("K"), np.arange(3.0)),
    "constant": (constant(0.1), 0.1),
}


@pytest.mark.parametrize("name", REAL)
def test_value(name):
    term, wanted = REAL[name]
    got = evaluate(term, ENV, SIZES)
    assert got.dtype == float
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


EXACT = "add sub mul div neg scale numbers contract matmul outer permute reshape"
EXACT += " broadcast concat append slice stack flip sum mean gather hot times_size"


@pytest.mark.parametrize("name", EXACT.split())
def test_fractions_are_exact(name):
    exact = {
        n: np.vectorize(Fraction, otypes=[object])(x) if x.dtype == float else x
        for n, x in ENV.items()
    }
    term, wanted = REAL[name]
    got = evaluate(term, exact, SIZES)
    assert {type(x) for x in np.asarray(got).flat} <= {Fraction, int}
    np.testing.assert_allclose(got.astype(float), wanted, rtol=1e-12)


def test_irrational_values_are_not_invented():
    exact = np.vectorize(Fraction, otypes=[object])(A)
    with pytest.raises(ArithmeticError, match="is not rational"):
        evaluate(p.exp(a), {"a": exact})


def test_top_k_gives_ties_to_the_lower_index():
    scores = p.real("scores", "B, E")
    values = np.array([[1.0, 3, 3, 2, 3], [0, 0, 0, 0, 0]])
    chosen = evaluate(p.topk(scores, "A"), {"scores": values}, {"A": 2})
    np.testing.assert_array_equal(chosen, [[1, 2], [0, 1]])
    order = evaluate(p.argsort(scores), {"scores": values})
    np.testing.assert_array_equal(order, [[1, 2, 4, 3, 0], [0, 1, 2, 3, 4]])
    with pytest.raises(ShapeError, match="at most the width: got 6 of 5"):
        evaluate(p.topk(scores, "A"), {"scores": values}, {"A": 6})


def test_integers_and_booleans():
    ids, wanted = p.integer("ids", "T"), p.integer("wanted", "")
    image = p.equal(ids, spread(wanted, ("T",)))
    env = {"ids": np.array([7, 1, 7, 7, 2]), "wanted": np.array(7)}
    counted = p.count(image)
    np.testing.assert_array_equal(evaluate(counted, env), [1, 0, 1, 1, 0])
    np.testing.assert_array_equal(evaluate(p.before(counted), env), [0, 1, 1, 2, 3])
    np.testing.assert_array_equal(evaluate(counted + 1, env), [2, 1, 2, 2, 1])
    r = p.real("r", "T")
    chosen = p.where(image, -r, r)
    np.testing.assert_array_equal(
        evaluate(chosen, {**env, "r": np.arange(5.0)}), [0, 1, -2, -3, 4]
    )


def test_indices_outside_are_refused():
    rows = p.gather(a, p.within(p.integer("j", ""), "H"))
    assert evaluate(rows, {"a": A, "j": np.array(1)}).shape == (3,)
    with pytest.raises(ShapeError, match=r"0\.\.1: got 2\.\.2 at .*test_evaluate.py"):
        evaluate(rows, {"a": A, "j": np.array(2)})
    with pytest.raises(ShapeError, match=r"i must lie in 0\.\.2: got -1\.\.0"):
        evaluate(p.gather(v, i), {"v": V, "i": np.array([0, -1])})


def test_inputs_that_do_not_fit():
    block = Block("demo", "", {"y": p.linear(a, v)})
    with pytest.raises(ShapeError, match="demo needs every input: missing v; it reads"):
        evaluate(block, {"a": A})
    message = r"input v must have shape \[K\]: got \[4\] with H=2, K=3"
    with pytest.raises(ShapeError, match=message):
        evaluate(block, {"a": A, "v": np.ones(4)})
    with pytest.raises(
        ShapeError, match=r"input v must have shape \[K\]: got \[3, 1\]"
    ):
        evaluate(block, {"a": A, "v": np.ones((3, 1))})
    with pytest.raises(ShapeError, match="needs a size for A: no input shows it"):
        evaluate(p.topk(v, "A"), {"v": V})


def test_an_input_has_one_node():
    twice = Block("demo", "", {"y": p.real("x", "D") + p.real("x", "D")})
    with pytest.raises(ShapeError, match="an input has one node: 'x' was made at"):
        evaluate(twice, {"x": V})


def test_a_shared_node_is_computed_once(monkeypatch):
    calls = []
    rule = RULES["exp"]
    monkeypatch.setitem(RULES, "exp", lambda c: calls.append(1) or rule(c))
    e = p.exp(a)
    for _ in range(30):
        e = e + e
    got = evaluate(Block("shared", "", {"one": e, "two": e * 1}), {"a": A})
    assert len(calls) == 1
    np.testing.assert_allclose(got["one"], np.exp(A) * 2.0**30)


def test_bilinear_weights_stretch_rows():
    got = evaluate(p.contract("oh,hk->ok", p.bilinear("O", "H"), a), ENV, {"O": 4})
    np.testing.assert_allclose(got[0], A[0])
    np.testing.assert_allclose(got[1], 0.75 * A[0] + 0.25 * A[1])
    np.testing.assert_allclose(got[3], A[1])
