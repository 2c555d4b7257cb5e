"""Products of many rows with matrices natively, in fp32 from packed panels."""

from array import array
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from k3.kernels.native import library

FORMS = {torch.float32: 0, torch.bfloat16: 1}
"""What a matrix may be held in, as gemm.h numbers it."""


def products(
    x: Float[Tensor, "n D"], weights: Sequence[Float[Tensor, "_ D"]]
) -> list[Float[Tensor, "n _"]]:
    """Return x W^T in fp32 for each W, fp32 or bf16, which is widened exactly.

    x is packed once for all of them. A row gives the same bits wherever it lies, and
    for any number of threads. Matches: torch.nn.functional.linear (fp32 1e-5).
    """
    x = x.contiguous()
    held = [w.contiguous() for w in weights]
    outs = [x.new_empty(len(x), len(w)) for w in held]
    given = array("q")
    for w, out in zip(held, outs, strict=True):
        rows, columns = w.shape
        form = FORMS[w.dtype]
        given.extend((w.data_ptr(), 0, form, rows, columns, out.data_ptr(), rows))
    library.function("k3_gemm", "piipii")(
        x.data_ptr(),
        *x.shape,
        given.buffer_info()[0],
        len(held),
        torch.get_num_threads(),
    )
    return outs
