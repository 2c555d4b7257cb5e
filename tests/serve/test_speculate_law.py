"""Whatever the draft proposes, the text has the law of the model's own sampling."""

import importlib.util
from pathlib import Path

import pytest
import torch
from drafting import Fixed, prefilled, sequence
from serving import request
from small import config, model, schedule

from k3.kernels import sample
from k3.serve import accept, speculate

FOUR = config(num_hidden_layers=4, linear=schedule(4))
pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(autouse=True)
def _without_gradients():
    with torch.inference_mode():
        yield


COUNT = 1200


def pairs(net, draft, options, k=2):
    """How often each pair of tokens comes first, over many seeds."""
    found = {}
    asked = [
        request("x", 3, max_tokens=2, **options | {"seed": i}) for i in range(COUNT)
    ]
    rows = [sequence(one) for one in asked]
    state = prefilled(net, rows[:1], k + 1)
    for start in range(0, COUNT, 250):
        part = rows[start : start + 250]
        for s in part:
            s.running.last_id = s.chain.tokens[-1]
        at = state.select([0] * len(part))
        at, _ = speculate.decode(net, at, part, draft, k)
        short = [i for i, s in enumerate(part) if not s.finish]
        if short:
            left = [part[i] for i in short]
            speculate.decode(net, at.select(short), left, draft, k)
    for s in rows:
        pair = tuple(s.chain.tokens[3:5])
        found[pair] = found.get(pair, 0) + 1
    return found


def expected(net, options):
    """The law of the first two tokens."""
    asked = request("x", 3, **options)
    rule, prompt = asked.options.sampling, torch.tensor([asked.tokens])
    first = sample.distribution(net(prompt)[:, -1], [rule])[0]
    words = [int(i) for i in first.nonzero()[:, 0]]
    both = torch.cat([prompt.repeat(len(words), 1), torch.tensor(words)[:, None]], 1)
    second = sample.distribution(net(both)[:, -1], [rule] * len(words))
    return {
        (a, b): float(first[a] * second[i, b])
        for i, a in enumerate(words)
        for b in second[i].nonzero()[:, 0].tolist()
    }


def chi_square(found, law):
    """(statistic - degrees) / its deviation, rare pairs in one cell."""
    cells, rest = [], [0.0, 0]
    for pair, chance in law.items():
        if chance * COUNT >= 5:
            cells.append((chance * COUNT, found.get(pair, 0)))
        else:
            rest[0] += chance * COUNT
    rest[1] = COUNT - sum(n for _, n in cells)
    cells.append((max(rest[0], 1e-9), rest[1]))
    value = sum((n - want) ** 2 / want for want, n in cells)
    degrees = len(cells) - 1
    return (value - degrees) / (2 * degrees) ** 0.5


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
