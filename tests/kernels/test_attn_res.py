"""Depth retrieval: softmax over sources, normalized keys, raw values."""

import pytest
import tolerances
import torch
from small import gap

from k3.kernels import attn_res

D, EPS = 23, 1e-5


def retrieve(sources, prefix, query):
    """The kernel over sources [.. S D] and an optional last one."""
    scale = attn_res.inverse_rms(sources, EPS)
    return attn_res.mix(sources, scale, prefix, query, EPS)


def reference(sources, query):
    v = sources.double()
    k = v / torch.sqrt(v.square().mean(-1, keepdim=True) + EPS)
    p = torch.softmax(k @ query.double(), -1)
    return (p[..., None] * v).sum(-2)


@pytest.mark.parametrize("num_sources", [1, 2, 9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_formula_with_and_without_a_running_sum(num_sources, dtype):
    sources = torch.randn(2, 5, num_sources, D, dtype=dtype) * 3
    query = torch.randn(D, dtype=dtype)
    tol = tolerances.of("attn_res", dtype)
    assert gap(retrieve(sources, None, query), reference(sources, query)) < tol
    if num_sources > 1:
        got = retrieve(sources[..., :-1, :], sources[..., -1, :], query)
        assert gap(got, reference(sources, query)) < tol


def test_report_37_zero_query_is_the_plain_mean():
    sources, prefix = torch.randn(3, 4, D), torch.randn(3, D)
    got = retrieve(sources, prefix, torch.zeros(D))
    assert gap(got, torch.cat([sources, prefix[:, None]], 1).mean(1)) < 1e-6


def test_report_37_scores_are_of_normalized_and_the_sum_of_raw_sources():
    """Ten times the source: the same weights, ten times its part of the sum."""
    sources = torch.randn(2, D, dtype=torch.float64)
    query = torch.randn(D, dtype=torch.float64)
    bigger = torch.stack([sources[0] * 10, sources[1]])
    p = torch.softmax(
        torch.stack([s * s.square().mean().rsqrt() for s in sources]) @ query, 0
    )
    got = retrieve(bigger, None, query)
    assert gap(got, p[0] * bigger[0] + p[1] * bigger[1]) < 1e-4


def test_there_is_no_scale_by_the_width():
    sources = torch.eye(2, 4, dtype=torch.float64)
    got = retrieve(sources, None, torch.tensor([1.0, 0, 0, 0], dtype=torch.float64))
    # A unit row of width 4 normalizes to 2.
    want = torch.softmax(torch.tensor([2.0, 0.0], dtype=torch.float64), 0)
    assert gap(got[:2], want) < 1e-4


def test_the_mixture_weights_of_the_article():
    """Scores ln 3 and ln 4 mix their sources by 3/7 and 4/7."""
    sources = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    query = torch.log(torch.tensor([3.0, 4.0], dtype=torch.float64)) / 2**0.5
    got = attn_res.mix(sources, attn_res.inverse_rms(sources, 0.0), None, query, 0.0)
    assert gap(got, torch.tensor([3 / 7, 4 / 7], dtype=torch.float64)) < 1e-12


def test_large_scores_stay_finite():
    sources = torch.randn(3, D)
    got = retrieve(sources, torch.zeros(D), torch.full((D,), 1e4))
    assert got.isfinite().all()


def test_report_37_narrow_sources_against_fp64():
    sources, query = torch.randn(4, 9, D).bfloat16(), torch.randn(D).bfloat16()
    folded = attn_res.fold_query(torch.ones(D).bfloat16(), query[None])
    got = retrieve(sources.float(), None, folded)
    assert folded.dtype == torch.float32
    assert gap(got.bfloat16(), reference(sources, query)) < tolerances.of(
        "attn_res", torch.bfloat16
    )


def test_report_37_gradients_are_those_of_the_formula():
    leaves = [
        torch.randn(*s, dtype=torch.float64, requires_grad=True)
        for s in ((2, 3, D), (2, D), (D,))
    ]
    got = retrieve(*leaves)
    want = reference(torch.cat([leaves[0], leaves[1][:, None]], 1), leaves[2])
    pairs = (torch.autograd.grad(x.square().sum(), leaves) for x in (got, want))
    for a, b in zip(*pairs, strict=True):
        assert gap(a, b) < 1e-10


def test_the_key_norm_folds_into_the_query():
    norm, proj = torch.rand(D) + 0.5, torch.randn(1, D)
    assert torch.equal(attn_res.fold_query(norm, proj), norm * proj[0])
