"""quant: packed MXFP4 experts are their decoded values, bit for bit."""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from k3.kernels import mx
from k3.model import Model
from k3.spec import mx as spec
from k3.verify.refine.check import Check, Setting, skipped

ROWS = 4
"""Rows of each tensor that the equation decodes, fraction by fraction."""
DTYPES = (torch.float64, torch.float32, torch.bfloat16)


def quant(setting: Setting) -> Iterator[Check]:
    """Packed weights = decoded weights, and the rules of the codec."""
    packed = dict(_packed(setting.model))
    if packed:
        yield _by_table(packed)
        yield _by_equation(packed)
        yield _packed_again(packed)
    else:
        yield skipped("packed weights", "this model holds its experts dequantized")
    dense = {n: mx.decode(p, s, torch.float64) for n, (p, s) in packed.items()}
    dense = dense or dict(_experts(setting.model))
    if dense:
        yield _within_scale(dense, setting.seed)


def _packed(model: Model) -> Iterator[tuple[str, tuple[Tensor, Tensor]]]:
    """(name, (bytes, scales)) of every tensor that is held in MXFP4."""
    buffers = dict(model.named_buffers())
    for name, value in buffers.items():
        if name.endswith("_packed"):
            stem = name.removesuffix("_packed")
            yield stem, (value, buffers[f"{stem}_scale"])


def _experts(model: Model) -> Iterator[tuple[str, Tensor]]:
    for name, value in model.named_parameters():
        if ".experts.w" in name and value.shape[-1] % mx.GROUP == 0:
            yield name, value.detach().double()


def _result(what: str, apart: list[str], detail: str) -> Check:
    first = apart[0] if apart else ""
    return Check(what=what, kind="bits", ok=not apart, detail=detail, first=first)


def _place(name: str, got: Tensor, want: Tensor) -> str:
    """The name and first index at which two tensors differ; empty if none does."""
    differs = (got != want).nonzero()
    if not len(differs):
        return ""
    at = tuple(differs[0].tolist())
    return f"{name}{list(at)}: {float(got[at])} against {float(want[at])}"


def _by_table(packed: Mapping[str, tuple[Tensor, Tensor]]) -> Check:
    """Every value in every dtype against nibble table times power of two in numpy."""
    apart, values = [], 0
    for name, (words, scale) in packed.items():
        want = _table(words, scale)
        for dtype in DTYPES:
            got = mx.decode(words, scale, dtype)
            values += got.numel()
            apart.append(_place(f"{name} in {dtype}", got, want.to(dtype)))
    detail = f"{len(packed)} tensors, {values} values in three dtypes"
    return _result("decoded = nibble times 2^(byte - 127)", _some(apart), detail)


def _table(words: Tensor, scale: Tensor) -> Tensor:
    raw = words.cpu().numpy()
    codes = np.stack([raw & 15, raw >> 4], -1).reshape(*raw.shape[:-1], -1)
    sign = np.where(codes & 8, -1.0, 1.0)
    size = np.array([float(x) for x in spec.E2M1])[codes & 7]
    power = np.repeat(scale.cpu().numpy().astype(int) - 127, spec.GROUP, -1)
    return torch.from_numpy(sign * np.ldexp(size, power)).to(words.device)


def _by_equation(packed: Mapping[str, tuple[Tensor, Tensor]]) -> Check:
    """The first rows of each tensor against spec.mx, in fractions."""
    apart, rows = [], 0
    for name, (words, scale) in packed.items():
        flat = words.flatten(0, -2)[:ROWS], scale.flatten(0, -2)[:ROWS]
        got = mx.decode(*flat, torch.float64)
        pairs = zip(flat[0].tolist(), flat[1].tolist(), strict=True)
        want = [[float(x) for x in spec.decode_row(*pair)] for pair in pairs]
        rows += len(want)
        apart.append(_place(name, got, torch.tensor(want, dtype=torch.float64)))
    return _result("decoded = spec.mx in fractions", _some(apart), f"{rows} rows")


def _packed_again(packed: Mapping[str, tuple[Tensor, Tensor]]) -> Check:
    """Packing decoded values again loses nothing."""
    apart = []
    for name, (words, scale) in packed.items():
        once = mx.decode(words, scale, torch.float64)
        twice = mx.decode(*mx.encode(once), torch.float64)
        apart.append(_place(name, twice, once))
    what = "decode, encode, decode = decode"
    return _result(what, _some(apart), f"{len(packed)} tensors")


def _within_scale(dense: Mapping[str, Tensor], seed: int) -> Check:
    """Weights moved off the grid: where the scale covers them, errors reach it at most.

    The rule "ceil" covers every value.
    """
    apart, generator = [], torch.Generator().manual_seed(seed)
    for name, value in dense.items():
        noise = torch.rand(value.shape, generator=generator, dtype=torch.float64)
        moved = value.cpu() * (0.75 + 0.5 * noise)
        words, scale = mx.encode(moved, rule="ceil")
        step = torch.exp2(scale.double() - 127).repeat_interleave(mx.GROUP, -1)
        gap = (mx.decode(words, scale, torch.float64) - moved).abs()
        limit = torch.minimum(gap, step)
        apart.append(_place(name, gap, limit))
    what = "encoding errs by one scale at most"
    return _result(what, _some(apart), f"{len(dense)} tensors moved off the grid")


def _some(apart: list[str]) -> list[str]:
    return [x for x in apart if x]
