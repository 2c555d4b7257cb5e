"""What works on one token: RMSNorm, SiTU, the depth mix, the router, the experts."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from k3.kernels import attn_res, moe, norm, situ
from k3.spec import attn_res as spec_attn_res
from k3.spec import moe as spec_moe
from k3.spec import norm as spec_norm
from k3.spec import ops
from k3.spec import situ as spec_situ
from k3.verify.exact.pairs.pair import Shadows
from k3.verify.operators.operator import Operator, Reading, Values, changed

RMS_NORM = Operator(
    name="rms_norm",
    says="weight x / sqrt(mean x^2 + eps)",
    program=norm.rms_norm,
    reference=spec_norm.rms_norm,
    draw=lambda draw: {
        "x": 0.05 * draw.normal(4, 7),
        "weight": draw.uniform(7, low=0.5, high=1.5),
        "eps": 1e-5,
    },
    layouts={"x": "... D", "weight": "D", "eps": "a number", "y": "... D"},
    outputs=("y",),
    readings=(
        Reading(
            "passing weight - 1: it multiplies by 1 + weight",
            changed(weight=lambda w: w - 1),
        ),
        Reading("an eps of 1e-6: it takes none", changed(eps=lambda eps: 1e-6)),
    ),
)


def _swap(a: str, b: str) -> Callable[[Values], Values]:
    return lambda values: values | {a: values[b], b: values[a]}


SITU = Operator(
    name="situ",
    says="Eq. 12: beta tanh(gate/beta) sigmoid(gate) * linear tanh(up/linear)",
    program=situ.situ,
    reference=spec_situ.situ,
    draw=lambda draw: {
        "gate": 3 * draw.normal(5, 6),
        "up": 12 * draw.normal(5, 6),
        "beta": 4.0,
        "linear": 25.0,
    },
    layouts={"gate": "... F", "up": "... F", "y": "... F"},
    outputs=("y",),
    readings=(
        Reading("exchanging gate and up", _swap("gate", "up")),
        Reading("exchanging the two caps", _swap("beta", "linear")),
    ),
)


def _mix(values: Tensor, query: Tensor, eps: float) -> Tensor:
    scale = attn_res.inverse_rms(values, eps)
    return attn_res.mix(values, scale, None, query, eps)


def _retrieve(values: Any, query: Any, eps: Any) -> Any:
    rows = [spec_attn_res.retrieve(query, values[t], eps) for t in range(len(values))]
    return ops.stack(rows)


ATTN_RES = Operator(
    name="attn_res",
    says="Eq. 8-9: softmax over sources of query . RMSNorm(source), on raw sources",
    program=_mix,
    reference=_retrieve,
    draw=lambda draw: {
        "values": draw.normal(3, 4, 7),
        "query": draw.normal(7),
        "eps": 1e-5,
    },
    layouts={
        "values": "T sources D",
        "query": "D: key-norm weight times projection",
        "out": "T D",
    },
    outputs=("out",),
    readings=(
        Reading(
            "multiplying the query by D^1/2: it divides scores by D^1/2",
            changed(query=lambda q: q * len(q) ** 0.5),
        ),
    ),
)


def _router(draw: Shadows) -> Values:
    return {
        "x": draw.normal(6, 5),
        "weight": draw.normal(7, 5),
        "bias": 0.3 * draw.normal(7),
        "k": 3,
        "scaling": 2.5,
    }


def _route(x: Any, weight: Any, bias: Any, k: int, scaling: Any) -> Any:
    found = [
        spec_moe.route(spec_moe.router(weight, x[t]), bias, k, scaling=scaling)
        for t in range(len(x))
    ]
    index = torch.tensor([chosen for chosen, _ in found])
    return index.numpy(), ops.stack([p for _, p in found])


ROUTE = Operator(
    name="moe.route",
    says="Eq. 13: experts of the largest sigmoid + bias, weights without the bias",
    program=moe.route,
    reference=_route,
    draw=_router,
    layouts={
        "x": "T D",
        "weight": "E D",
        "bias": "E: e_score_correction_bias, for the choice only",
        "k": "experts of a token",
        "scaling": "routed_scaling_factor",
        "index": "T k: largest first, ties to the lower index",
        "weights": "T k",
    },
    outputs=("index", "weights"),
    readings=(
        Reading(
            "multiplying the weights by the scaling: it leaves that out",
            after=changed(weights=lambda w: w * 2.5),
        ),
        Reading("negating the bias", changed(bias=torch.neg)),
    ),
)


def _draw_experts(draw: Shadows) -> Values:
    T, L, E, F, k = 6, 5, 4, 6, 2
    chosen = torch.stack([draw.uniform(E).argsort()[:k] for _ in range(T)])
    weights = draw.uniform(T, k, low=0.1, high=1.0)
    return {
        "x": draw.normal(T, L),
        "index": chosen,
        "weights": weights / weights.sum(-1, keepdim=True),
        "w1": draw.normal(E, F, L),
        "w2": draw.normal(E, L, F),
        "w3": draw.normal(E, F, L),
        "beta": 4.0,
        "linear": 25.0,
    }


def _experts(
    x: Tensor, index: Tensor, weights: Tensor, w1: Tensor, w2: Tensor, **rest: Any
) -> Tensor:
    w3, beta, linear = rest["w3"], rest["beta"], rest["linear"]

    def expert(e: int, rows: Tensor) -> Tensor:
        return situ.situ(rows @ w1[e].T, rows @ w3[e].T, beta, linear) @ w2[e].T

    return moe.combine(x, index, weights, expert)


def _mixture(x: Any, index: Any, weights: Any, w1: Any, w2: Any, **rest: Any) -> Any:
    w3, caps = rest["w3"], {"beta": rest["beta"], "linear": rest["linear"]}
    rows = []
    for t in range(len(x)):
        outs = [
            spec_situ.expert(w1[int(e)], w3[int(e)], w2[int(e)], x[t], **caps)
            for e in index[t]
        ]
        rows.append(spec_moe.mixture(weights[t], outs))
    return ops.stack(rows)


EXPERTS = Operator(
    name="moe.experts",
    says="Eq. 11: the mixture of the chosen experts on a given route",
    program=_experts,
    reference=_mixture,
    draw=_draw_experts,
    layouts={
        "x": "T L: latents",
        "index": "T k",
        "weights": "T k",
        "w1": "E F L: gate",
        "w2": "E L F: down",
        "w3": "E F L: up",
        "out": "T L",
    },
    outputs=("out",),
    readings=(Reading("exchanging w1 and w3: gate is read as up", _swap("w1", "w3")),),
)

OPERATORS = (RMS_NORM, SITU, ATTN_RES, ROUTE, EXPERTS)
