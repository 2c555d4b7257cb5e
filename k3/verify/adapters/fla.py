"""flash-linear-attention's KDA: tokens [B T H .], state [B H K V], query unscaled.

Source: fla-core 0.6.0, fla/ops/kda/naive.py, by its docstrings.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor

TILE = 16


def memory(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of (q, k, v, g, beta, initial_state, output_final_state) as ours.

    A function with `chunk_size` is called with 16, and with tokens that write nothing
    behind the last, for it may refuse a length that is no multiple.
    """

    def call(
        q: Tensor, k: Tensor, v: Tensor, g: Tensor, *, beta: Tensor, state: Tensor
    ) -> tuple[Tensor, Tensor]:
        T, K = q.shape[0], q.shape[-1]
        options, missing = {}, 0
        if "chunk_size" in inspect.signature(function).parameters:
            options, missing = {"chunk_size": TILE}, -T % TILE
        tokens = (q * math.sqrt(K), k, v, g)
        padded = [F.pad(x, (0, 0, 0, 0, 0, missing))[None] for x in tokens]
        out, final = function(
            *padded,
            beta=F.pad(beta, (0, 0, 0, missing))[None],
            initial_state=state.transpose(-1, -2)[None],
            output_final_state=True,
            **options,
        )
        return out[0, :T], final[0].transpose(-1, -2)

    return call


OPERATORS = {"kda.recurrent": memory, "kda.chunk": memory}
