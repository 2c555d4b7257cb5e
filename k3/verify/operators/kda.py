"""KDA for one sequence: recurrence, chunk form, one step, gate, short convolution."""

import math
from typing import Any

import torch
from torch import Tensor

from k3.kernels import conv, kda, norm, precision
from k3.spec import kda as spec
from k3.spec import norm as spec_norm
from k3.spec import ops
from k3.verify.exact.pairs.kda import by_head
from k3.verify.exact.pairs.pair import Shadows
from k3.verify.operators.operator import Operator, Reading, Values, changed, swapped

TOKENS = ("q", "k", "v", "g", "beta")
LAYOUTS = {
    "q": "T H K: unit-norm query, times K^-1/2",
    "k": "T H K: unit-norm key",
    "v": "T H V",
    "g": "T H K: log of the retention alpha, natural",
    "beta": "T H: write strength in (0, 1)",
    "state": "H V K: the memory before, transposed from the paper's [K V]",
    "out": "T H V",
    "final": "H V K: the memory after, transposed from the paper's [K V]",
}


def _draw(T: int) -> Any:
    def draw(draw: Shadows) -> Values:
        H, K, V = 3, 5, 4
        q, k = (norm.l2_norm(draw.normal(T, H, K)) for _ in "qk")
        return {
            "q": q * K**-0.5,
            "k": k,
            "v": draw.normal(T, H, V),
            "g": draw.uniform(T, H, K, low=-3.0, high=-0.05),
            "beta": draw.uniform(T, H, low=0.05, high=0.95),
            "state": draw.normal(H, V, K),
        }

    return draw


def _program(form: Any) -> Any:
    def program(q: Any, k: Any, v: Any, g: Any, *, beta: Any, state: Any) -> Any:
        # The layer widens everything that meets the memory.
        q, k, v, g, beta, state = map(precision.wide, (q, k, v, g, beta, state))
        out, final = form(q, k, v, g, beta, state=state[None], lens=(len(q),))
        return out, final[0]

    return program


def _reference(q: Any, k: Any, v: Any, g: Any, *, beta: Any, state: Any) -> Any:
    tokens = (q, k, v, ops.exp(g), beta)
    out, final = by_head(spec.recurrent, tokens, state[None], (len(q),))
    return out, final[0]


def _scaled(inputs: Values) -> Values:
    return inputs | {"q": inputs["q"] * math.sqrt(inputs["q"].shape[-1])}


def _unscaled(inputs: Values) -> Values:
    return inputs | {"q": inputs["q"] / math.sqrt(inputs["q"].shape[-1])}


READINGS = (
    Reading(
        "swapping the K and V axes of the state",
        swapped("state", axes=(-1, -2)),
        swapped("final", axes=(-1, -2)),
    ),
    Reading(
        "transposing heads and time: it takes and returns [H T .]",
        swapped(*TOKENS, axes=(0, 1)),
        swapped("out", axes=(0, 1)),
    ),
    Reading("passing alpha: g is read as alpha, not log alpha", changed(g=torch.exp)),
    Reading(
        "passing g / ln 2: g is read as a logarithm to base 2",
        changed(g=lambda g: g / math.log(2)),
    ),
    Reading("passing -g: g is read as a rate of decay", changed(g=torch.neg)),
    Reading("passing q without K^-1/2: the query scale is applied twice", _scaled),
    Reading("multiplying the query by K^-1/2 once more: it divides it out", _unscaled),
    Reading(
        "passing logit(beta): it takes the sigmoid of beta itself",
        changed(beta=torch.logit),
    ),
    Reading("negating beta", changed(beta=torch.neg)),
)


def _memory(name: str, says: str, form: Any, T: int) -> Operator:
    return Operator(
        name=name,
        says=says,
        program=_program(form),
        reference=_reference,
        draw=_draw(T),
        layouts=LAYOUTS,
        outputs=("out", "final"),
        readings=READINGS,
    )


def _gate(floor: float | None) -> Operator:
    def draw(draw: Shadows) -> Values:
        H, K = 3, 5
        return {
            "z": draw.normal(7, H, K),
            "A_log": draw.uniform(H, high=2.0),
            "dt_bias": draw.uniform(H, K, low=-3.0, high=1.0),
        }

    def program(z: Tensor, A_log: Tensor, dt_bias: Tensor) -> Tensor:
        return kda.gate(z, A_log, dt_bias, floor)

    def reference(z: Any, A_log: Any, dt_bias: Any) -> Any:
        heads = range(len(A_log))
        rows = [spec.gate(z[:, h] + dt_bias[h], A_log[h], floor) for h in heads]
        return ops.stack(rows, 1)

    return Operator(
        name="kda.gate" if floor else "kda.gate_unbounded",
        says="Eq. 5: -5 sigmoid(e^A (z + b))"
        if floor
        else "Kimi-Linear's gate: -e^A softplus(z + b)",
        program=program,
        reference=reference,
        draw=draw,
        layouts={"z": "T H K", "A_log": "H", "dt_bias": "H K", "g": "T H K: log alpha"},
        outputs=("g",),
        readings=(
            Reading("taking the logarithm: it returns alpha", after=changed(g=_log)),
            Reading("passing exp(A_log): A_log is read as A", changed(A_log=torch.exp)),
            Reading("negating the result", after=changed(g=torch.neg)),
        ),
    )


def _log(x: Tensor) -> Tensor:
    return x.clamp_min(0).log()


def _conv(draw: Shadows) -> Values:
    return {
        "x": draw.normal(9, 6),
        "weight": draw.normal(6, 4),
        "window": draw.normal(3, 6),
    }


def _convolve(x: Tensor, weight: Tensor, window: Tensor) -> tuple[Tensor, Tensor]:
    y, carried = conv.short_conv(x[None], weight[:, None], window[None])
    return y[0], carried[0]


def _convolution(x: Any, weight: Any, window: Any) -> Any:
    rows, width = ops.concat([window, x]), weight.shape[1]
    at = [rows[t : t + width][::-1] for t in range(len(x))]
    y = [spec.short_conv(r, weight) for r in at]
    return ops.silu(ops.stack(y)), rows[len(x) :]


SHORT_CONV = Operator(
    name="short_conv",
    says="Eq. 2: silu of the causal depthwise convolution, and the window after it",
    program=_convolve,
    reference=_convolution,
    draw=_conv,
    layouts={
        "x": "T C",
        "weight": "C W: the last tap meets the current token",
        "window": "W-1 C: the inputs before x, oldest first",
        "y": "T C",
        "carried": "W-1 C: the last inputs, oldest first",
    },
    outputs=("y", "carried"),
    readings=(
        Reading("reversing the taps", changed(weight=lambda w: w.flip(-1))),
        Reading(
            "taking silu of y: it leaves the activation out",
            after=changed(y=torch.nn.functional.silu),
        ),
        Reading(
            "reversing the window: it holds the newest input first",
            changed(window=lambda w: w.flip(0)),
            changed(carried=lambda w: w.flip(0)),
        ),
        Reading(
            "transposing channels and time",
            swapped("x", "window", axes=(0, 1)),
            swapped("y", "carried", axes=(0, 1)),
        ),
    ),
)

L2_NORM = Operator(
    name="l2_norm",
    says="section 2.1.1: x / sqrt(sum x^2 + 1e-6)",
    program=norm.l2_norm,
    reference=spec_norm.l2_norm,
    draw=lambda draw: {"x": 0.01 * draw.normal(4, 3, 5)},
    layouts={"x": "... K", "y": "... K"},
    outputs=("y",),
)

OPERATORS = (
    _memory("kda.recurrent", "Eq. 1 token by token: outputs, memory", kda.recurrent, 7),
    _memory("kda.chunk", "Eq. 4: the same over tiles of 16 tokens", kda.chunk, 35),
    _gate(-5.0),
    _gate(None),
    SHORT_CONV,
    L2_NORM,
)
