"""The shipped model: its error, its routes and its modules."""

import time

import pytest
import torch

from k3.checkpoint.load import load
from k3.checkpoint.locate import locate
from k3.verify import enclose

IDS = list(range(100, 132))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "error", "flips"), [(torch.float32, 2e-5, 0), (torch.bfloat16, 0.6, 1)]
)
def test_the_shipped_model_and_32_tokens_in_a_minute(dtype, error, flips):
    model = load(locate("tiny"), dtype=dtype, device="cpu", experts="packed")
    before = time.process_time()
    report = enclose.run(model, IDS)
    assert time.process_time() - before < 60
    assert report, report
    assert 0 < report.error < error
    assert len(report.margins) == 8 * 32
    assert len(report.modules) == 56
    assert min(flips, 1) == min(len(report.flips), 1)
    assert report.error_on_route <= report.error


@pytest.mark.slow
def test_the_shipped_model_and_one_token():
    model = load(locate("tiny"), dtype=torch.float32, device="cpu", experts="packed")
    report = enclose.run(model, IDS[:1], equation=False)
    assert report, report
    assert report.error < 1e-5
    assert sum(m.certain for m in report.modules) == 8
