"""KDA memories after kept tokens, natively: bit for bit those of the decode step."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels.native import library


def run(
    base: Float[Tensor, "B H V K"],
    tokens: tuple[Tensor, Tensor, Tensor, Tensor],
    counts: Sequence[int],
) -> Float[Tensor, "B H V K"]:
    """Return the memories after the first counts[b] tokens (k, v, g, beta) of row b."""
    base = base.contiguous()
    given = [x.contiguous() for x in tokens]
    each = torch.tensor(counts, dtype=torch.int64)
    out = torch.empty_like(base)
    B, H, V, K = base.shape
    sizes = (B, given[0].shape[1], H, K, V, torch.get_num_threads())
    at = [x.data_ptr() for x in (base, out, *given, each)]
    library.function("k3_kda_replay", "p" * 7 + "i" * 6)(*at, *sizes)
    return out
