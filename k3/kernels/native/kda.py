"""Kimi Delta Attention natively: kernels.kda.chunk and step, with gradients."""

from array import array
from functools import lru_cache
from struct import Struct

import torch
from torch import Tensor

from k3 import errors
from k3.kernels.native import library
from k3.kernels.native.operation import Floats, Ints, Operation, blank

CALL, BACK = Struct("25q"), Struct("33q")
"""The fields of `Call` in kda.h and of `Back` in kda_backward.cpp, in their order."""


def chunk(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    state: Tensor,
    lens: tuple[int, ...],
    record: bool,
) -> tuple[Tensor, Tensor]:
    """Return kernels.kda.chunk of fp32 tensors; with `record`, autograd can follow."""
    if record or torch.compiler.is_compiling():
        given = [q, k, v, g, beta, state]
        out, final = OPERATION(given, lens, (), record=record)
    else:
        out, final, _ = run((q, k, v, g, beta), state, lens, kept=False)
    return out, final


def run(
    tokens: tuple[Tensor, ...], state: Tensor, lens: tuple[int, ...], *, kept: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """(readouts, final states, each token's v - S' k if kept) of q, k, v, g, beta."""
    check(tokens, state, lens)
    q, k, v, g = map(rows, tokens[:4])
    state = state.contiguous()
    out, final = blank(v), torch.empty_like(state)
    missed = torch.empty_like(out) if kept else None
    call = CALL.pack(
        *heads(q),
        *heads(k),
        *heads(v),
        *heads(g),
        *heads(tokens[4]),
        state.data_ptr(),
        final.data_ptr(),
        out.data_ptr(),
        0 if missed is None else missed.data_ptr(),
        *sizes(k, v, lens),
    )
    library.function("k3_kda", "p")(call)
    return out, final, missed


def run_backward(
    saved: tuple[Tensor, ...], d_out: Tensor, d_final: Tensor, lens: tuple[int, ...]
) -> tuple[Tensor, ...]:
    """Gradients of q, k, v, g, beta and state; `saved` is these and what run kept."""
    q, k, v, g = map(rows, saved[:4])
    beta, state, missed = saved[4:]
    state, d_final, d_out = state.contiguous(), d_final.contiguous(), rows(d_out)
    like = (q, k, v, g, beta, state)
    grads = tuple(blank(x) for x in like)
    inputs = (q, k, v, g, beta, d_out)
    call = BACK.pack(
        *(number for x in inputs for number in heads(x)),
        *(x.data_ptr() for x in (state, missed, d_final, *grads)),
        *sizes(k, v, lens),
    )
    library.function("k3_kda_backward", "p")(call)
    return grads


def _forward(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    *tokens, state = given
    out, final, missed = run(tuple(tokens), state, tuple(ints), kept=True)
    assert missed is not None
    return [out, final, missed]


def _backward(
    saved: list[Tensor], grads: list[Tensor], ints: Ints, floats: Floats
) -> list[Tensor]:
    return list(run_backward(tuple(saved), grads[0], grads[1], tuple(ints)))


def _like(given: list[Tensor], ints: Ints, floats: Floats) -> list[Tensor]:
    v, state = given[2], given[5]
    return [blank(v), blank(state), blank(v)]


OPERATION = Operation("kda", _forward, _like, back=_backward, kept=1)


def rows(x: Tensor) -> Tensor:
    """Return x with its last axis side by side in memory."""
    return x if x.stride(-1) == 1 else x.contiguous()


def heads(x: Tensor) -> tuple[int, int, int]:
    """Where x [T H ...] is: its address, and the distance of tokens and of heads."""
    return x.data_ptr(), x.stride(0), x.stride(1)


def sizes(k: Tensor, v: Tensor, lens: tuple[int, ...]) -> tuple[int, ...]:
    """Address of the lengths, their number, heads, key, value and threads."""
    address = lengths(lens).buffer_info()[0]
    _, H, V = v.shape
    return address, len(lens), H, k.shape[2], V, torch.get_num_threads()


@lru_cache(maxsize=256)
def lengths(lens: tuple[int, ...]) -> "array[int]":
    """Return the lengths as the kernel reads them."""
    return array("q", lens)


def check(tokens: tuple[Tensor, ...], state: Tensor, lens: tuple[int, ...]) -> None:
    """Refuse what would be read past its end. Raises: ShapeError."""
    q, k, v, g, beta = (x.shape for x in tokens)
    T, H, K = k
    fits = q == k == g and v[:2] == beta == k[:2] and sum(lens) == T
    if not fits or state.shape != (len(lens), H, v[2], K) or min(lens, default=0) < 0:
        raise errors.ShapeError(
            "KDA takes q, k, g [T H K], v [T H V], beta [T H], state [S H V K] and S "
            f"lengths that add up to T: got {[tuple(x.shape) for x in tokens]}, "
            f"{tuple(state.shape)} and lengths {lens}; pass one length a sequence"
        )
