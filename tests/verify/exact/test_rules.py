"""Rewrites that are the same function, pairs that almost are, and what is refused."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from k3.spec import loss, norm, ops
from k3.verify import exact
from k3.verify.exact.mode import ExactMode
from k3.verify.exact.tensor import Unsupported

X = torch.randn(3, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
W = torch.randn(5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def check(program, reference, **inputs):
    """Inputs come by name, and not every function of torch or ops takes them so."""
    given = inputs or {"x": X}

    def named(function):
        return lambda **values: function(*values.values())

    return exact.equal(named(program), named(reference), given, seeds=2)


def softmax_online(x):
    top, Z, N = x[..., :1], torch.ones_like(x[..., :1]), torch.ones_like(x[..., :1])
    parts = [N]
    for j in range(1, x.shape[-1]):
        new = torch.maximum(top, x[..., j : j + 1])
        scale, e = torch.exp(top - new), torch.exp(x[..., j : j + 1] - new)
        top, Z = new, Z * scale + e
        parts = [p * scale for p in parts] + [e]
    return torch.cat(parts, -1) / Z


SOFTMAX = {
    "torch": lambda x: x.softmax(-1),
    "shifted by the maximum": lambda x: (x - x.amax(-1, True)).softmax(-1),
    "online": softmax_online,
    "base two": lambda x: (t := torch.exp2(x * math.log2(math.e))) / t.sum(-1, True),
    "by log-sum-exp": lambda x: torch.exp(x - torch.logsumexp(x, -1, True)),
    "by log_softmax": lambda x: F.log_softmax(x, -1).exp(),
    "product of halves": lambda x: (h := (x / 2).exp()) * h / (h * h).sum(-1, True),
}


@pytest.mark.parametrize("name", SOFTMAX)
def test_softmax_in_every_form(name):
    report = check(SOFTMAX[name], ops.softmax)
    assert report, report


RMS = {
    "torch": lambda x, w: F.rms_norm(x, (5,), w, 1e-5),
    "rsqrt": lambda x, w: x * torch.rsqrt(x.square().mean(-1, True) + 1e-5) * w,
    "division, weight first": lambda x, w: (
        w * x / (x.pow(2).sum(-1, True) / 5 + 1e-5) ** 0.5
    ),
    "rounded to bf16 and back": lambda x, w: F.rms_norm(
        x.bfloat16().double(), (5,), w, 1e-5
    ),
}


@pytest.mark.parametrize("name", RMS)
def test_rms_norm_in_every_form(name):
    report = check(RMS[name], lambda x, w: norm.rms_norm(x, w), x=X, w=W)
    assert report, report


def test_cumprod_of_exp_is_exp_of_cumsum():
    def reference(x):
        rows = [x[:, :1]]
        for j in range(1, 5):
            rows.append(rows[-1] + x[:, j : j + 1])
        return ops.exp(ops.concat(rows, axis=1))

    assert check(lambda x: x.exp().cumprod(-1), reference)
    assert check(lambda x: x.cumsum(-1).exp(), reference)
    assert check(
        lambda x: torch.exp(torch.exp(x) * 2),
        lambda x: ops.exp(ops.exp(x)) * ops.exp(ops.exp(x)),
    )


def test_losses_and_softplus():
    target = torch.tensor([1, -100, 2])
    masked = lambda x: loss.next_token_loss(x, [1, 0, 2], [True, False, True])  # noqa: E731
    assert check(lambda x: F.cross_entropy(x, target), masked)
    assert check(lambda x: torch.log1p(torch.exp(x)), ops.softplus)
    assert check(F.softplus, ops.softplus)
    wrong = check(lambda x: F.cross_entropy(x, target, reduction="sum"), masked)
    assert not wrong


def taylor(x):
    term, out = torch.ones_like(x), torch.ones_like(x)
    for n in range(1, 13):
        term = term * x / n
        out = out + term
    return out


ALMOST = {
    "eps 1.0000001e-5": (
        lambda x: F.rms_norm(x, (5,), None, 1.0000001e-5),
        norm.unit_rms,
    ),
    "1e-20 in a denominator": (
        lambda x: x / (x.square().sum(-1, True) + 1e-20),
        lambda x: x / (x * x).sum(keepdims=True),
    ),
    "exp by twelve Taylor terms": (taylor, ops.exp),
    "exp linear in its sum": (
        lambda x: torch.exp(x) + torch.exp(2 * x) - 1,
        lambda x: ops.exp(3 * x),
    ),
    "x^2 and |x| x": (lambda x: x.abs() * x, lambda x: x * x),
}


@pytest.mark.parametrize("name", ALMOST)
def test_almost_equal_pairs_are_told_apart(name):
    report = check(*ALMOST[name])
    assert not report
    assert report.place
    assert "test_rules.py" in report.place.file


UNDECIDED = {
    "sigmoid by exp": (lambda x: 1 / (1 + torch.exp(-x)), ops.sigmoid),
    "sigmoid by tanh": (lambda x: (1 + torch.tanh(x / 2)) / 2, ops.sigmoid),
    "1 - sigmoid": (lambda x: 1 - torch.sigmoid(-x), ops.sigmoid),
    "tanh is odd": (lambda x: -torch.tanh(-x), ops.tanh),
    "roots of a product": (
        lambda x: x.square().sqrt() * x.exp().sqrt(),
        lambda x: ops.sqrt(x * x * ops.exp(x)),
    ),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_identities_of_functions_are_undecided(name):
    report = check(*UNDECIDED[name])
    assert not report
    assert report.verdict == "UNDECIDED"
    assert "write the reference in the program's form" in str(report)


@pytest.mark.parametrize("name", ALMOST)
def test_no_almost_equal_pair_is_undecided(name):
    assert check(*ALMOST[name]).verdict == "DIFFERENT"


def test_differences_below_float64_are_said_to_be():
    report = check(*ALMOST["1e-20 in a denominator"])
    assert "equal in float64, not exactly" in str(report)


def test_an_unknown_operation_is_named():
    with pytest.raises(
        Unsupported, match=r"aten\.lgamma\.default has no exact meaning"
    ):
        check(torch.lgamma, lambda x: x)
    with pytest.raises(Unsupported, match="rounds an exact value"):
        check(lambda x: torch.div(x, 2, rounding_mode="floor"), lambda x: x)
    plain = torch.zeros(3, 5, dtype=torch.float64)
    with pytest.raises(Unsupported, match="into a plain tensor"):
        check(lambda x: plain.copy_(x), lambda x: x)


def test_writes_reach_every_view():
    def program(x):
        out = torch.zeros(2, 3, 5, dtype=torch.float64)
        out[0] = x
        row = out[1]
        row[1:].copy_(x[:2])
        row.mul_(2)
        out[1, 0] += x[0]
        return out

    def reference(x):
        row = ops.concat([x[:1], x[:2] * 2])
        return ops.stack([x, row])

    assert check(program, reference)


def test_a_choice_ranks_by_shadow_or_by_hash():
    def program(x):
        index = torch.topk(x, 2, -1).indices
        return x.gather(-1, index)

    def reference(x):
        rows = []
        for r in range(3):
            rows.append(ops.stack([x[r, j] for j in ops.order(x[r])[:2]]))
        return ops.stack(rows)

    report = exact.equal(program, reference, {"x": X}, order=("shadow", "hash"))
    assert report
    assert 0 < report.margin < np.inf
    other = exact.equal(lambda x: program(2 * x) / 2, reference, {"x": X}, order="hash")
    assert not other, "2x is ranked by another hash than x"


def test_an_unknown_order_is_refused():
    from k3.errors import RequestError

    with pytest.raises(RequestError, match="order must be one of"):
        ExactMode(order="random")
