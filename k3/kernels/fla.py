"""KDA by fla-core's CUDA kernels: layouts and conventions are converted here.

Theirs are [B T H .], packed sequences have B = 1 and cumulative lengths; q is scaled by
1 / sqrt(K) unless a scale is given, and ours carries its scale; g is the log-decay of a
token, as ours; a state is [K V] unless it is asked for as [V K], in fp32.
Source: the signatures and docstrings of fla-core 0.6.0, fla.ops.kda.
"""

from functools import lru_cache
from itertools import accumulate
from types import ModuleType

import torch
from jaxtyping import Float
from torch import Tensor

MAX_KEY = 256
"""Keys longer than this have no kernel there."""


def chunk(
    q: Float[Tensor, "T H K"],
    k: Float[Tensor, "T H K"],
    v: Float[Tensor, "T H V"],
    g: Float[Tensor, "T H K"],
    beta: Float[Tensor, "T H"],
    *,
    state: Float[Tensor, "S H V K"],
    lens: tuple[int, ...],
    narrow: bool,
) -> tuple[Float[Tensor, "T H V"], Float[Tensor, "S H V K"]]:
    """Return kernels.kda.chunk; with `narrow`, of q, k and v rounded to bf16.

    Its products round fp32 to TF32. Sequences of no tokens are not shown to it.
    """
    real = tuple(n for n in lens if n)
    if not real:
        return v, state
    at = torch.tensor([i for i, n in enumerate(lens) if n], device=state.device)
    some = len(real) < len(lens)
    shown = (x.to(torch.bfloat16) if narrow else x for x in (q, k, v))
    out, final = _operations().chunk_kda(
        *(x.unsqueeze(0) for x in (*shown, g, beta)),
        scale=1.0,
        initial_state=state[at] if some else state,
        output_final_state=True,
        state_v_first=True,
        cu_seqlens=starts(real, q.device),
        cu_seqlens_cpu=starts(real, torch.device("cpu")),
    )
    if some:
        final = state.index_copy(0, at, final)
    return out.squeeze(0).to(v.dtype), final


def step(
    q: Float[Tensor, "S H K"],
    k: Float[Tensor, "S H K"],
    v: Float[Tensor, "S H V"],
    g: Float[Tensor, "S H K"],
    beta: Float[Tensor, "S H"],
    *,
    state: Float[Tensor, "S H V K"],
) -> tuple[Float[Tensor, "S H V"], Float[Tensor, "S H V K"]]:
    """Return kernels.kda.step; it has no gradient."""
    if not len(q):
        return v, state
    out, final = _operations().fused_recurrent_kda(
        *(x.unsqueeze(1) for x in (q, k, v, g, beta)),
        scale=1.0,
        initial_state=state,
        output_final_state=True,
        state_v_first=True,
    )
    return out.squeeze(1), final


@lru_cache(maxsize=256)
def starts(lens: tuple[int, ...], device: torch.device) -> Tensor:
    """Where each sequence starts and the last one ends; the same tensor every time."""
    # Kept for later calls, it must not be an inference tensor: autograd refuses those.
    with torch.inference_mode(False):
        return torch.tensor([0, *accumulate(lens)], device=device)


def _operations() -> ModuleType:
    from fla.ops import kda

    return kda
