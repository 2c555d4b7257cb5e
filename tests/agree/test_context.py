"""A rank's summary and the scan over ranks against Eq. 17's."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from k3.model.inputs import Inputs
from k3.parallel import context as fast
from k3.spec import context as spec

H, K, V = 3, 5, 4


def tokens(n, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(1, n, H, *shape, generator=generator, dtype=torch.float64)

    q, k = normalize(draw(K), dim=-1), normalize(draw(K), dim=-1)
    g, beta = -draw(K).abs(), torch.sigmoid(draw())
    return q, Inputs(raw=draw().flatten(2), k=k, v=draw(V), g=g, beta=beta)


def spec_parts(q, new, h):
    """One head's q, k, v, alpha, beta as the spec takes them."""
    alpha = new.g.exp()
    parts = (q, new.k, new.v, alpha, new.beta)
    return tuple(x[0, :, h].numpy() for x in parts)


def summary(parts):
    _, k, v, alpha, beta = parts
    return spec.segment(k, v, alpha, beta)


@pytest.mark.parametrize("n", [1, 2, 16, 37])
def test_a_summary_is_the_segments_affine_map(n):
    q, new = tokens(n)
    empty = torch.zeros(1, H, V, K, dtype=torch.float64)
    _, got = fast.alone(q, new, empty)
    for h in range(H):
        want = summary(spec_parts(q, new, h))
        np.testing.assert_allclose(got[h, :V].T, want.B, atol=1e-12)
        np.testing.assert_allclose(got[h, V:].T, want.M, atol=1e-12)


class Told:
    """A wire on which every rank has said its summary."""

    def __init__(self, rank, summaries):
        self.rank, self.size, self.said = rank, len(summaries), summaries

    def gather(self, name, x):
        return self.said


def test_the_scan_gives_every_ranks_start_and_outputs():
    lens = (7, 1, 20)
    parts = [tokens(n, seed) for seed, n in enumerate(lens)]
    empty = torch.zeros(1, H, V, K, dtype=torch.float64)
    alone = [fast.alone(q, new, empty) for q, new in parts]
    said = torch.stack([s for _, s in alone])
    for rank, (reads, own) in enumerate(alone):
        given = Told(rank, said), reads, own, rank > 0
        _, start = fast.Start.apply(*given)
        seen = (start @ reads[..., V:].unsqueeze(-1)).squeeze(-1)
        for h in range(H):
            per_rank = [spec_parts(q, new, h) for q, new in parts]
            zero = np.zeros((K, V))
            starts = spec.starts(zero, [summary(p) for p in per_rank])
            np.testing.assert_allclose(start[h].T, starts[rank], atol=1e-12)
            _, outs = spec.parallel(zero, per_rank)
            first = sum(lens[:rank])
            got = (reads[..., :V] + seen)[0, :, h]
            np.testing.assert_allclose(
                got, outs[first : first + lens[rank]], atol=1e-12
            )
