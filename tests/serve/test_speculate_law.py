"""Whatever the draft proposes, the text has the law of the model's own sampling."""

import importlib.util
from pathlib import Path

import pytest
import torch
from drafting import Fixed, chi_square, expected, pairs
from small import config, model, schedule

from k3.serve import accept

FOUR = config(num_hidden_layers=4, linear=schedule(4))
pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.inference_mode():
        yield


OPTIONS = {
    "plain": {"temperature": 1.0, "top_p": 1.0},
    "cut": {"temperature": 0.8, "top_p": 0.7, "top_k": 9, "min_p": 0.02},
}


@pytest.fixture(scope="module")
def sharp():
    """A model of few likely tokens, so that pairs come often enough to count."""
    made = model(made=FOUR)
    with torch.no_grad():
        made.language_model.lm_head.weight.mul_(4.0)
    return made


def fixed(kind):
    generator = torch.Generator().manual_seed(3)
    laws = torch.rand(4, 61, generator=generator, dtype=torch.float64).pow(6)
    laws = laws / laws.sum(-1, keepdim=True)
    return Fixed(laws, start=3, certain=kind == "certain")


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("drawn", "plain"),
        ("certain", "cut"),
        pytest.param("drawn", "cut", marks=SLOW),
        pytest.param("certain", "plain", marks=SLOW),
    ],
)
def test_report_25_the_law_of_the_text_is_the_targets(sharp, options, kind):
    asked = OPTIONS[options]
    law = expected(sharp, asked)
    assert abs(sum(law.values()) - 1) < 1e-9
    assert chi_square(pairs(sharp, fixed(kind), asked), law) < 4


REAL = accept.verify
MUTANTS = {
    "any token is kept": lambda ids, p, q, u: ([*ids], len(ids)),
    "p and q change places": lambda ids, p, q, u: REAL(
        ids, torch.cat([q, p[-1:]]), p, u
    ),
    "the correction is the target's law": None,
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_of_the_rule_has_another_law(sharp, monkeypatch, name):
    if MUTANTS[name] is None:
        monkeypatch.setattr(accept, "correction", lambda p, token, q: p)
    else:
        monkeypatch.setattr(accept, "verify", MUTANTS[name])
    asked = OPTIONS["plain"]
    law = expected(sharp, asked)
    assert chi_square(pairs(sharp, fixed("drawn"), asked), law) > 6


def test_report_98_the_benchmark_refuses_loops_and_other_outputs():
    path = Path(__file__).parents[2] / "benchmarks" / "speculate.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_drafts", path)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    loop, text_ = {"0": [1, 2] * 20}, {"0": list(range(40))}
    with pytest.raises(SystemExit, match=r"unique bigrams are 0.05 of the tokens"):
        bench.check(loop, loop)
    with pytest.raises(SystemExit, match="drafting has changed the output"):
        bench.check(text_, loop)
    bench.check(text_, text_)
