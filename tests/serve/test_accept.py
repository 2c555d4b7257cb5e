"""The acceptance rule on laws small enough to add up by hand."""

from collections import Counter

import pytest
import torch

from k3.errors import RequestError
from k3.serve import accept

P = torch.tensor([0.55, 0.30, 0.15], dtype=torch.float64)
Q = torch.tensor([0.25, 0.45, 0.30], dtype=torch.float64)


def law(p, q, steps=12):
    """(law of the first token, chance of acceptance), added up over a grid."""
    found, accepted = torch.zeros(len(p), dtype=torch.float64), 0.0
    grid = [(i + 0.5) / steps for i in range(steps)]
    for token in range(len(p)):
        if not q[token] > 0:
            continue
        for u in grid:
            weight = float(q[token]) / steps
            kept = accept.verify([token], p[None], q[None], [u, 0.5])[1]
            accepted += weight * kept
            for pick in [0.5] if kept else grid:
                ids, _ = accept.verify([token], p[None], q[None], [u, pick])
                found[ids[0]] += weight if kept else weight / steps
    return found, accepted


def test_report_25_acceptance_and_correction_are_those_of_the_report():
    found, accepted = law(P, Q)
    assert accepted == pytest.approx(0.70, abs=1e-12)
    assert torch.allclose(found, P, atol=1e-12)
    assert accept.correction(P, 1, Q).nonzero().flatten().tolist() == [0]


def test_report_25_edges():
    """Equal laws accept always; what p forbids never comes; what q forbids may."""
    assert law(P, P)[1] == pytest.approx(1.0)
    none = torch.tensor([0.5, 0.0, 0.5], dtype=torch.float64)
    assert law(none, Q)[0][1] == 0
    assert torch.allclose(law(P, none, 20)[0], P, atol=0.03)
    with pytest.raises(RequestError, match=r"a draft draws its tokens from its own"):
        accept.verify([1], P[None], none[None], [0.5, 0.5])
    bonus = torch.stack([P, torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)])
    assert accept.verify([0], bonus, Q[None], [0.0, 0.9]) == ([0, 2], 1)


@pytest.mark.slow
def test_report_25_two_hundred_thousand_draws():
    generator = torch.Generator().manual_seed(7)
    count, seen = 200_000, Counter()
    drafted = torch.multinomial(Q, count, True, generator=generator).tolist()
    for token in drafted:
        numbers = accept.uniforms(2, generator)
        seen[accept.verify([token], P[None], Q[None], numbers)[0][0]] += 1
    found = torch.tensor([seen[i] / count for i in range(3)], dtype=torch.float64)
    assert float((found - P).abs().sum()) / 2 < 0.01
