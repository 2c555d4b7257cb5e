"""Choosing a token: greedy, and drawn after temperature and cuts."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from k3.kernels import sample
from k3.spec import ops
from k3.verify.exact.pairs.pair import Shadows
from k3.verify.operators.operator import Operator, Values

LAYOUTS = {
    "logits": "B W",
    "token": "B: ties to the lower id",
    "logprob": "B: of the logits as they came",
}


def _greedy(logits: Tensor) -> tuple[Tensor, Tensor]:
    rows = [torch.Generator() for _ in logits]
    found = sample.sample(logits, sample.SampleOptions(temperature=0.0), rows)
    return found.tokens, found.logprobs


def _largest(logits: Any) -> Any:
    token = np.array([ops.order(row)[0] for row in logits])
    logp = [ops.log_softmax(row)[t] for row, t in zip(logits, token, strict=True)]
    return token, np.array(logp)


GREEDY = Operator(
    name="sample.greedy",
    says="the most likely token and its log-probability",
    program=_greedy,
    reference=_largest,
    draw=lambda draw: {"logits": 2 * draw.normal(5, 11)},
    layouts=LAYOUTS,
    outputs=("token", "logprob"),
    exact=False,
)


def _numbers(draw: Shadows) -> Values:
    rows = 9
    seeds = list(range(rows))
    uniform = [_uniform(torch.Generator().manual_seed(s)) for s in seeds]
    return {
        "logits": 2 * draw.normal(rows, 11),
        "uniform": torch.stack(uniform),
        "temperature": 0.8,
        "top_k": 8,
        "top_p": 0.9,
        "min_p": 0.02,
    }


def _uniform(generator: torch.Generator) -> Tensor:
    return torch.rand((), generator=generator, dtype=torch.float64)


def _drawn(logits: Tensor, uniform: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
    # Row i of `uniform` is the first number of the generator with seed i.
    rows = [torch.Generator().manual_seed(i) for i in range(len(uniform))]
    found = sample.sample(logits, sample.SampleOptions(**options), rows)
    return found.tokens, found.logprobs


def _law(row: Any, temperature: float, k: int, top_p: float, min_p: float) -> Any:
    """The probabilities of a draw: temperature, top_k, top_p, min_p in this order."""
    p = ops.softmax(row / temperature)
    ranked = np.argsort(-p, kind="stable")[:k]
    before = np.cumsum(p[ranked]) - p[ranked]
    kept = ranked[before < top_p * p[ranked].sum()]
    out = np.zeros_like(p)
    out[kept] = p[kept]
    return np.where(out >= min_p * out.max(), out, 0)


def _inverse(logits: Any, uniform: Any, temperature: Any, **cuts: Any) -> Any:
    tokens, logprobs = [], []
    for row, u in zip(logits, uniform, strict=True):
        p = _law(row, temperature, cuts["top_k"], cuts["top_p"], cuts["min_p"])
        running = np.cumsum(p)
        token = int(np.searchsorted(running, u * running[-1], side="right"))
        tokens.append(token)
        logprobs.append(ops.log_softmax(row)[token])
    return np.array(tokens), np.array(logprobs)


DRAW = Operator(
    name="sample.draw",
    says="temperature, top_k, top_p, min_p, then where the running sum passes u",
    program=_drawn,
    reference=_inverse,
    draw=_numbers,
    layouts=LAYOUTS | {"uniform": "B: one number in [0, 1) a row"},
    outputs=("token", "logprob"),
    exact=False,
)
OPERATORS = (GREEDY, DRAW)
