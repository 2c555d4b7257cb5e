"""The table of rewrites: which are seen to be equal, and which print "undecided"."""

import math

import pytest
import torch
import torch.nn.functional as F

from k3.spec import norm, ops
from k3.verify import exact

DRAW = torch.Generator().manual_seed(3)
Q, K, V = (torch.randn(4, 3, generator=DRAW, dtype=torch.float64) for _ in range(3))
W = torch.randn(3, generator=DRAW, dtype=torch.float64)
ROOT = 3**0.5


def attend(q, k, v, **_):
    return ops.softmax((q @ k.T) / ops.sqrt(ops.lift(q, 3))) @ v


def relu2(q, **_):
    return 2 * ops.maximum(q, 0)


def gelu(q, **_):
    inner = ops.sqrt(2 / ops.pi(q)) * (q + ops.lift(q, 0.044715) * q * q * q)
    return q * (1 + ops.tanh(inner)) / 2


def normed(q, w, **_):
    return norm.rms_norm(q, w)


def largest(q, **_):
    return ops.stack([row[ops.order(row)[0]] for row in (q[i] for i in range(4))])


EQUAL = {
    "scaled_dot_product_attention": (
        lambda q, k, v, **_: F.scaled_dot_product_attention(q[None], k[None], v[None])[
            0
        ],
        attend,
    ),
    "scale on q": (
        lambda q, k, v, **_: ((q * 3**-0.5) @ k.T).softmax(-1) @ v,
        attend,
    ),
    "divide by the root": (
        lambda q, k, v, **_: (q @ k.T / ROOT).softmax(-1) @ v,
        attend,
    ),
    "softmax in base two": (
        lambda q, k, v, **_: (
            (t := torch.exp2(q @ k.T / ROOT * math.log2(math.e))) @ v / t.sum(-1, True)
        ),
        attend,
    ),
    "norm folded after the product": (
        lambda q, w, k, **_: (
            (q @ (w[:, None] * k.T)) * torch.rsqrt(q.square().mean(-1, True) + 1e-5)
        ),
        lambda q, w, k, **_: norm.rms_norm(q, w) @ k.T,
    ),
    "mean as sum over n": (
        lambda q, w, **_: q / (q.pow(2).sum(-1, True) / 3 + 1e-5).sqrt() * w,
        normed,
    ),
    "exp(g/2) squared": (
        lambda q, **_: (q / 2).exp() ** 2,
        lambda q, **_: ops.exp(q),
    ),
    "exp of a sum of products": (
        lambda q, k, v, **_: (q * k).exp() * (q * v).exp(),
        lambda q, k, v, **_: ops.exp(q * (k + v)),
    ),
    "exp of a quotient": (
        lambda q, k, **_: (q / k).exp() * (1 / k).exp(),
        lambda q, k, **_: ops.exp((q + 1) / k),
    ),
    "silu": (lambda q, **_: F.silu(q), lambda q, **_: q * ops.sigmoid(q)),
    "gelu by tanh": (lambda q, **_: F.gelu(q, approximate="tanh"), gelu),
    "relu of twice": (lambda q, **_: F.relu(2 * q), relu2),
    "maximum by relu": (
        lambda q, k, **_: k + F.relu(q - k),
        lambda q, k, **_: ops.maximum(q, k),
    ),
    "largest by sorting": (
        lambda q, **_: q.sort(-1, descending=True).values[:, 0],
        largest,
    ),
    "largest of sigmoids": (
        lambda q, **_: q.gather(-1, q.sigmoid().topk(1, -1).indices)[:, 0],
        largest,
    ),
    "bf16 and back": (lambda q, **_: q.bfloat16().double() * 2, lambda q, **_: q * 2),
}
UNDECIDED = {
    "root of d out of the norm": (
        lambda q, **_: 3**0.5 * torch.rsqrt(q.square().sum(-1, True) + 3e-5),
        lambda q, **_: 1 / ops.sqrt((q * q).sum(keepdims=True) / 3 + ops.lift(q, 1e-5)),
    ),
}


def report(program, reference):
    given = {"q": Q, "k": K, "v": V, "w": W}
    return exact.equal(program, reference, given, seeds=1, covering=False)


@pytest.mark.parametrize("name", EQUAL)
def test_rewrites_that_are_seen_to_be_equal(name):
    found = report(*EQUAL[name])
    assert found, found


@pytest.mark.parametrize("name", UNDECIDED)
def test_rewrites_that_are_undecided(name):
    assert report(*UNDECIDED[name]).verdict == "UNDECIDED"


def test_the_reciprocal_of_a_squared_root_is_a_known_false_alarm():
    found = report(
        lambda q, k, **_: torch.rsqrt(q.square() + k.square()) ** 2,
        lambda q, k, **_: 1 / (q * q + k * k),
    )
    assert found.verdict == "DIFFERENT"
