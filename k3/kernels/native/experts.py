"""All chosen experts of some rows in one native call, from dense or MXFP4 stacks."""

import ctypes
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from k3.kernels.native import library, product
from k3.kernels.native.operation import Floats, Ints, Operation

Stack = Tensor | Sequence[Tensor]
NAMES = ("w1", "w2", "w3", "s1", "s2", "s3")


class _Experts(ctypes.Structure):
    """Struct Experts of experts.h."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("w1", "w2", "w3", "s1", "s2", "s3")),
        *((name, ctypes.c_int64) for name in ("E", "L", "F")),
        *((name, ctypes.c_double) for name in ("beta", "linear_beta")),
    ]


def addresses(stack: Stack) -> Int[Tensor, " E"]:
    """Return where the matrix of each expert lies."""
    if isinstance(stack, Tensor):
        step = stack.stride(0) * stack.element_size()
        return torch.arange(len(stack)) * step + stack.data_ptr()
    return torch.tensor([x.data_ptr() for x in stack])


def combine(
    z: Float[Tensor, "T L"],
    index: Int[Tensor, "T k"],
    weights: Float[Tensor, "T k"],
    stacks: dict[str, Stack],
    caps: tuple[float, float],
) -> Float[Tensor, "T L"]:
    """Sum of weight * w2 SiTU(w1 z, w3 z) over the chosen experts, in fp32.

    `stacks` are w1, w2, w3 in the dtype of z or in bf16, or their MXFP4 bytes with the
    scales s1, s2, s3; `caps` is SiTU's beta and linear beta.
    Matches: kernels.moe.combine over model.experts.Experts.
    """
    given = [z, index, weights]
    for name in NAMES[: len(stacks)]:
        stack = stacks[name]
        given += [stack] if isinstance(stack, Tensor) else stack
    apart = () if isinstance(stacks["w1"], Tensor) else (len(stacks["w1"]),)
    return OPERATION(given, apart, caps, record=False)[0]


def _run(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    """The same of flat tensors; `ints` says how many make a stack, where not one."""
    z, index, weights = (x.contiguous() for x in given[:3])
    stacks: Sequence[Stack] = given[3:]
    if ints:
        each = ints[0]
        stacks = [given[at : at + each] for at in range(3, len(given), each)]
    tables = {
        name: addresses(stack) for name, stack in zip(NAMES, stacks, strict=False)
    }
    made = _Experts(
        **{name: table.data_ptr() for name, table in tables.items()},
        E=len(stacks[0]),
        L=z.shape[1],
        F=stacks[0][0].shape[0],
        beta=floats[0],
        linear_beta=floats[1],
    )
    out = _like(given, ints, floats)
    library.function("k3_experts", "ppppiipii")(
        ctypes.addressof(made),
        z.data_ptr(),
        index.data_ptr(),
        weights.data_ptr(),
        z.shape[0],
        index.shape[1],
        out[0].data_ptr(),
        product.trunk(z.dtype, stacks[0][0].dtype),
        torch.get_num_threads(),
    )
    return out


def _like(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    return [given[0].new_empty(given[0].shape, dtype=torch.float32)]


OPERATION = Operation("experts", _run, _like)
