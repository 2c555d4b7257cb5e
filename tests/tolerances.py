"""The one table of tolerances, by operation and dtype.

An error is the largest difference over the largest value wanted (`small.gap`). No
number here is loosened without a line in CHANGELOG.md.
"""

import torch

BY_OPERATION = {
    # KDA's chunk form and short convolution against the token recurrence.
    "kda": {torch.float32: 1e-5, torch.float64: 1e-10},
    "conv": {torch.float32: 1e-6, torch.float64: 1e-10},
    # Attention in passes, absorbed or paged, against one softmax over expanded keys.
    "mla": {torch.float32: 1e-5, torch.float64: 1e-12},
    "attn_res": {torch.float32: 1e-6, torch.float64: 1e-12, torch.bfloat16: 2e-2},
    "moe": {torch.float32: 1e-5, torch.float64: 1e-12},
    # MXFP4 experts from their bytes against decoded ones: scales are powers of two, so
    # products are the same; their sums run in the order of the packed codes.
    "packed": {torch.float32: 5e-6},
    "norm": {torch.float32: 1e-6, torch.float64: 1e-12, torch.bfloat16: 1e-2},
    "situ": {torch.float32: 1e-6, torch.float64: 1e-12, torch.bfloat16: 1e-2},
    # Streaming, chunked and packed passes against the whole sequence: logits, state.
    "state": {torch.float32: 2e-5, torch.float64: 1e-11},
    # Mean error of a whole model's logits, all experts chosen, against the same
    # weights in fp64: with experts left out, near ties flip and move single tokens.
    "model": {torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 2.5e-3},
}


def of(operation: str, dtype: torch.dtype) -> float:
    """The tolerance of an operation in a dtype."""
    return BY_OPERATION[operation][dtype]
