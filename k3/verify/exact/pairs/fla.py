"""Anybody's KDA with fla's signature: tokens [B T H .], state [B H K V], q unscaled.

from fla.ops.kda.naive import naive_chunk_kda
print(fla.memory(naive_chunk_kda, 64).check())
"""

from collections.abc import Callable
from typing import Any

from k3.spec import kda as spec
from k3.spec import ops
from k3.verify.exact.pairs.pair import Pair, Shadows


def memory(
    function: Callable[..., Any],
    T: int,
    *,
    heads: int = 2,
    K: int = 3,
    V: int = 2,
    **options: Any,
) -> Pair:
    """A function (q, k, v, g, beta, scale, initial_state, ...) against Eq. 1."""

    def program(**inputs: Any) -> Any:
        return function(**inputs, output_final_state=True, **options)

    def reference(
        q: Any, k: Any, v: Any, g: Any, *, beta: Any, initial_state: Any
    ) -> Any:
        q, alpha = q / ops.sqrt(ops.lift(q, K)), ops.exp(g)
        each = [
            spec.recurrent(
                initial_state[0, h],
                q[0, :, h],
                k[0, :, h],
                v[0, :, h],
                alpha=alpha[0, :, h],
                beta=beta[0, :, h],
            )
            for h in range(heads)
        ]
        outputs = ops.stack([o for _, o in each], 1)
        return outputs[None], ops.stack([S for S, _ in each])[None]

    given = _inputs(T, heads, K, V)
    return Pair(getattr(function, "__name__", "KDA"), program, reference, given)


def _inputs(T: int, H: int, K: int, V: int) -> dict[str, Any]:
    draw = Shadows(13)
    return {
        "q": draw.normal(1, T, H, K),
        "k": draw.normal(1, T, H, K),
        "v": draw.normal(1, T, H, V),
        "g": draw.uniform(1, T, H, K, low=-5.0, high=0.0),
        "beta": draw.uniform(1, T, H),
        "initial_state": draw.normal(1, H, K, V),
    }
