"""The decoder over the real numbers: the spec in Arb on a model's weights and tokens.

Every top-k is reported with its margin, and may be told which experts to take: then the
rest of the text goes on as a program went that took them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from k3 import errors
from k3.config import TextConfig
from k3.model import Model
from k3.spec import attn_res, moe, ops
from k3.spec import model as spec
from k3.spec.weights import under
from k3.verify.enclose import arbs

ENOUGH = 1e-20
"""Radii that a result is good enough with."""
BITS, MOST_BITS = 384, 6144
Routes = Mapping[tuple[int, int], Sequence[int]]
"""Experts by (layer, token)."""


@dataclass(frozen=True, slots=True)
class Routed:
    """One top-k of the spec: its own choice, and the margin of the one it went with.

    `margin` is the smallest biased score taken less the largest left out; negative
    where a given route is not the spec's.
    """

    best: tuple[int, ...]
    taken: tuple[int, ...]
    margin: float


@dataclass(slots=True)
class Truth:
    """Logits [T W] as floats, the largest Arb radius, and all routes."""

    logits: Tensor
    radius: float
    bits: int
    routed: dict[tuple[int, int], Routed] = field(default_factory=dict)
    states: list[Any] = field(default_factory=list)
    """The states after each token."""


class _TooWide(Exception):
    """Radii have grown: more bits are needed."""


def decoder(model: Model, ids: Sequence[int], routes: Routes | None = None) -> Truth:
    """Logits of a sequence from the empty state, with as many bits as it takes.

    Raises: RequestError where a value cannot be told from infinity with 6144 bits.
    """
    return _enough(lambda bits: _Decoder(model).run(ids, bits, routes or {}))


def both(model: Model, ids: Sequence[int], routes: Routes) -> tuple[Truth, Truth]:
    """The same on the spec's own routes, and on given ones; one value if they agree.

    Raises: RequestError, as decoder does.
    """

    def run(bits: int) -> tuple[Truth, Truth]:
        runs = _Decoder(model)
        best = runs.run(ids, bits, {})
        apart = [at for at, e in routes.items() if best.routed[at].best != _set(e)]
        if not apart:
            return best, best
        # Up to the first flip both are the same.
        start = min(token for _, token in apart)
        return best, runs.run(ids, bits, routes, best, start)

    return _enough(run)


def _set(chosen: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(chosen))


def _enough(run: Callable[[int], Any]) -> Any:
    """What a run gives with the fewest bits that are enough."""
    bits = BITS
    while bits <= MOST_BITS:
        try:
            with arbs.precision(bits):
                return run(bits)
        except _TooWide:
            bits *= 2
    raise errors.RequestError(
        f"the spec must have finite values: with {MOST_BITS} bits a radius is still "
        f"above {ENOUGH}; look for weights that are huge or not finite"
    )


def array(x: Tensor) -> Any:
    """A tensor as Arb holds it, exactly."""
    return arbs.arbs(x.detach().cpu().double().numpy())


def parameters(module: torch.nn.Module) -> dict[str, Any]:
    """A module's own parameters by name, without stacked experts; matrices are kept."""
    return {
        name: arbs.keep(array(p))
        for name, p in module.named_parameters()
        if not name.endswith(("experts.w1", "experts.w2", "experts.w3"))
    }


def experts(module: Any, chosen: Sequence[int], kept: dict[str, Any]) -> dict[str, Any]:
    """The matrices of some experts by the checkpoint's names, decoded once."""
    for e in chosen:
        for name in ("w1", "w2", "w3"):
            key = f"experts.{e}.{name}.weight"
            if key not in kept:
                kept[key] = arbs.keep(array(module.weight(name, e)))
    return kept


def sparse(
    weights: Mapping[str, Any],
    module: Any,
    x: Any,
    taken: Sequence[int] | None,
    kept: dict[str, Any],
) -> tuple[Any, Routed]:
    """Eq. 11 and 13 for one token [D], on its own route or on a given one."""
    scores = moe.router(weights["gate.weight"], x)
    biased, k = scores + weights["gate.e_score_correction_bias"], module.k
    best = moe.top_k(biased, k)
    chosen = best if taken is None else list(taken)
    # The bias only chooses: scores are below 1, so a bias of 2 is a choice.
    bias = array(torch.zeros(len(scores), dtype=torch.float64))
    for e in chosen:
        bias[e] = bias[e] + 2
    chosen, p = moe.route(scores, bias, len(chosen), scaling=module.scaling)
    known = {**weights, **experts(module.experts, chosen, kept)}
    y = moe.given_route(
        known,
        x,
        chosen,
        p,
        beta=module.experts.beta,
        linear=module.experts.linear_beta,
        eps=module.routed_expert_norm.eps,
    )
    made = Routed(_set(best), _set(chosen), _margin(biased, chosen))
    return y, made


def _margin(biased: Any, chosen: Sequence[int]) -> float:
    inside = set(chosen)
    rest = [e for e in range(len(biased)) if e not in inside]
    if not rest:
        return float("inf")
    worst = min(chosen, key=lambda e: ops.key(biased[e]))
    other = moe.top_k(ops.stack([biased[e] for e in rest]), 1)[0]
    gap = biased[worst] - biased[rest[other]]
    return float(gap.mid())


class _Decoder:
    """The spec's decoder on one model, token by token."""

    def __init__(self, model: Model) -> None:
        self.config: TextConfig = model.config.text
        self.text: Any = model.language_model
        self.routes: Routes = {}
        self.routed: dict[tuple[int, int], Routed] = {}
        count = self.config.num_hidden_layers
        self.layers: list[Any] = list(self.text.model.layers[:count])
        self.own = [parameters(layer) for layer in self.layers]
        self.kept: list[dict[str, Any]] = [{} for _ in self.layers]
        self.ends = {
            f"model.{name}": array(p)
            for name, p in self.text.model.named_parameters()
            if name.startswith(("norm.", "output_attn_res"))
        }
        self.ends["lm_head.weight"] = arbs.keep(array(self.text.lm_head.weight))

    def run(
        self,
        ids: Sequence[int],
        bits: int,
        routes: Routes,
        before: Truth | None = None,
        start: int = 0,
    ) -> Truth:
        """All tokens, those before `start` from another run. Raises _TooWide."""
        out = Truth(torch.empty(0), 0.0, bits)
        self.routes, self.routed = routes, out.routed
        rows: list[Tensor] = []
        if before is not None and start:
            out.routed |= {at: r for at, r in before.routed.items() if at[1] < start}
            out.states, rows = before.states[:start], list(before.logits[:start])
            out.radius = before.radius
        for t in range(start, len(ids)):
            states = list(out.states[-1]) if out.states else self._empty()
            logits = self._token(t, ids[t], states)
            out.radius = max(out.radius, float(arbs.radius(logits).max()))
            if not out.radius <= ENOUGH:
                raise _TooWide
            rows.append(torch.from_numpy(arbs.middle(logits)))
            out.states.append(states)
        out.logits = torch.stack(rows)
        return out

    def _token(self, t: int, token: int, states: list[Any]) -> Any:
        """Logits of one token; its states go into the list."""
        depth = attn_res.start(array(self.text.model.embed_tokens.weight[token]))
        for i in range(len(self.layers)):
            depth, states[i] = self._layer(i, t, depth, states[i])
        return spec.finish(self.ends, self.config, depth)

    def _empty(self) -> list[Any]:
        weights = {
            f"model.layers.{i}.{name}": w
            for i, own in enumerate(self.own)
            for name, w in own.items()
        }
        return spec.empty_states(weights | self.ends, self.config)

    def _layer(self, i: int, t: int, depth: Any, state: Any) -> tuple[Any, Any]:
        own, config = self.own[i], self.config
        names = "self_attention_res", "input_layernorm"
        x = spec.retrieve(own, config, depth, names)
        state, y = spec.mix_tokens(under(own, "self_attn."), config, state, x)
        depth = attn_res.add(depth, y)
        names = "mlp_res", "post_attention_layernorm"
        x = spec.retrieve(own, config, depth, names)
        depth = attn_res.add(depth, self._channels(i, t, x))
        return attn_res.finish_layer(depth, config.attn_res_block_size), state

    def _channels(self, i: int, t: int, x: Any) -> Any:
        if not self.layers[i].sparse:
            return spec.mix_channels(self.own[i], self.config, x)
        weights = under(self.own[i], "block_sparse_moe.")
        module, given = self.layers[i].block_sparse_moe, self.routes.get((i, t))
        y, made = sparse(weights, module, x, given, self.kept[i])
        self.routed[i, t] = made
        return y
