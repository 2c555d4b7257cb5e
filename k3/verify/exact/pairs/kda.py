"""KDA: gate, convolution, the recurrence in every form, the layer, context ranks."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from k3.kernels import conv, kda, norm
from k3.spec import context, kda_layer, ops
from k3.spec import kda as spec
from k3.spec import norm as spec_norm
from k3.spec.ops import Array
from k3.verify.exact.pairs import layout
from k3.verify.exact.pairs.pair import Pair, Shadows

Form = Callable[..., tuple[Array, Array]]


def memory(
    form: str,
    lens: Sequence[int] = (20,),
    *,
    heads: int = 2,
    K: int = 5,
    V: int = 3,
    floor: float = -5.0,
    seed: int = 0,
) -> Pair:
    """kernels.kda.`form` over packed sequences, against Eq. 1 token by token.

    Keys and queries are raw: both sides normalize them first.
    """
    kernel = getattr(kda, form)
    given = _inputs(sum(lens), len(lens), (heads, K, V), floor=floor, seed=seed)

    def program(q: Any, k: Any, v: Any, g: Any, *, beta: Any, state: Any) -> Any:
        extra = {} if form == "step" else {"lens": tuple(lens)}
        tokens = norm.l2_norm(q) * K**-0.5, norm.l2_norm(k), v, g, beta
        return kernel(*tokens, state=state, **extra)

    def reference(q: Any, k: Any, v: Any, g: Any, *, beta: Any, state: Any) -> Any:
        q = spec_norm.l2_norm(q) / ops.sqrt(ops.lift(q, K))
        k = spec_norm.l2_norm(k)
        return by_head(spec.recurrent, (q, k, v, ops.exp(g), beta), state, lens)

    return Pair(f"kda.{form}", program, reference, given)


def _inputs(
    T: int, sequences: int, sizes: tuple[int, int, int], *, floor: float, seed: int
) -> dict[str, Any]:
    draw, (H, K, V) = Shadows(seed), sizes
    return {
        "q": draw.normal(T, H, K),
        "k": draw.normal(T, H, K),
        "v": draw.normal(T, H, V),
        "g": draw.uniform(T, H, K, low=floor, high=0.0),
        "beta": draw.uniform(T, H),
        "state": draw.normal(sequences, H, V, K),
    }


def by_head(
    form: Form, tokens: Sequence[Array], state: Array, lens: Sequence[int]
) -> tuple[Array, Array]:
    """A spec form for each sequence and head, in the layout of the kernels."""
    q, k, v, alpha, beta = tokens
    outs, states = [], []
    for s, at in enumerate(layout.by_sequence(lens)):
        if at.start == at.stop:
            states.append(state[s])
            continue
        each = [
            form(
                layout.paper_state(state, s, h),
                q[at, h],
                k[at, h],
                v[at, h],
                alpha=alpha[at, h],
                beta=beta[at, h],
            )
            for h in range(state.shape[1])
        ]
        outs.append(ops.stack([o for _, o in each], 1))
        states.append(layout.running_state([S for S, _ in each]))
    return ops.concat(outs), ops.stack(states)


def ranks(
    sizes: Sequence[int] = (7, 18, 5), *, heads: int = 2, K: int = 4, V: int = 3
) -> Pair:
    """kernels.kda.chunk over a whole sequence, against Eq. 17 on consecutive ranks."""
    given = _inputs(sum(sizes), 1, (heads, K, V), floor=-5.0, seed=1)
    whole = (sum(sizes),)

    def program(q: Any, k: Any, v: Any, g: Any, *, beta: Any, state: Any) -> Any:
        return kda.chunk(q, k, v, g, beta, state=state, lens=whole)

    def cut(
        S: Array, q: Array, k: Array, v: Array, *, alpha: Array, beta: Array
    ) -> tuple[Array, Array]:
        parts = layout.by_sequence(sizes)
        return context.parallel(
            S, [(q[a], k[a], v[a], alpha[a], beta[a]) for a in parts]
        )

    def reference(q: Any, k: Any, v: Any, g: Any, *, beta: Any, state: Any) -> Any:
        return by_head(cut, (q, k, v, ops.exp(g), beta), state, whole)

    return Pair("kda.chunk by context ranks", program, reference, given)


def gate(floor: float | None = -5.0, *, heads: int = 3, K: int = 5) -> Pair:
    """kernels.kda.gate against Eq. 5."""
    draw = Shadows(2)
    given = {
        "z": draw.normal(4, heads, K),
        "A_log": draw.uniform(heads, high=2.7),
        "dt_bias": draw.normal(heads, K),
    }

    def program(z: Any, A_log: Any, dt_bias: Any) -> Any:
        return kda.gate(z, A_log, dt_bias, floor)

    def reference(z: Any, A_log: Any, dt_bias: Any) -> Any:
        rows = [spec.gate(z[:, h] + dt_bias[h], A_log[h], floor) for h in range(heads)]
        return ops.stack(rows, 1)

    return Pair("kda.gate", program, reference, given)


def short_conv(T: int = 9, channels: int = 6, width: int = 4) -> Pair:
    """kernels.conv.short_conv and the window it leaves, against Eq. 2."""
    draw = Shadows(3)
    given = {
        "x": draw.normal(1, T, channels),
        "weight": draw.normal(channels, 1, width),
        "window": draw.normal(1, width - 1, channels),
    }

    def reference(x: Any, weight: Any, window: Any) -> Any:
        rows = ops.concat([window[0], x[0]])
        past = width - 1
        y = [spec.short_conv(rows[t : t + width][::-1], weight[:, 0]) for t in range(T)]
        return ops.silu(ops.stack(y))[None], rows[T : T + past][None]

    return Pair("conv.short_conv", conv.short_conv, reference, given)


def layer(module: nn.Module, tokens: int = 18, *, floor: float, eps: float) -> Pair:
    """A whole KDA layer [1 T D] against kda_layer.sequence."""
    width = module.q_proj.weight.shape[1]  # type: ignore[union-attr, index]
    given = {"x": Shadows(4).normal(1, tokens, int(width))}
    heads: Any = module.heads

    def reference(weights: Any, x: Any) -> Any:
        xs = [x[0, t] for t in range(tokens)]
        out = kda_layer.sequence(weights, xs, heads=heads, floor=floor, eps=eps)[1]
        return out[None]

    return Pair("KDA layer", module, reference, given)
