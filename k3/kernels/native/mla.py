"""Attention of a prompt over expanded keys and values natively."""

from array import array

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels.native import library


def attend(
    q: Float[Tensor, "B T H dim"],
    kv: Float[Tensor, "B S H both"],
    shared: Float[Tensor, "B S rope"],
    scale: float,
) -> Float[Tensor, "B T H V"]:
    """Causal attention of the last T of S tokens, all in fp32 or all in bf16.

    A head's key is the first columns of its `kv`, then `shared`; the rest is its value.
    Softmax and sums in fp32; the same bits for any number of threads.
    Matches: kernels.mla.attend_heads.
    """
    q, kv = q.contiguous(), kv.contiguous()
    if shared.stride(2) != 1 or shared.stride(0) != shared.shape[1] * shared.stride(1):
        shared = shared.contiguous()
    B, T, H, dim = q.shape
    S, rope = shared.shape[1:]
    nope = dim - rope
    out = q.new_empty(B, T, H, kv.shape[-1] - nope)
    sizes = array("q", (B, T, S, H, nope, rope, out.shape[-1], shared.stride(1)))
    library.function("k3_mla_attend", "pppppfii")(
        q.data_ptr(),
        kv.data_ptr(),
        shared.data_ptr(),
        out.data_ptr(),
        sizes.buffer_info()[0],
        scale,
        q.dtype == torch.bfloat16,
        torch.get_num_threads(),
    )
    return out
