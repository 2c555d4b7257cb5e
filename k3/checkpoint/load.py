"""Load a checkpoint in the released layout: checked whole first, then read in place."""

import math
import os
from collections.abc import Callable

import torch

from k3.checkpoint import header, locate, places, version
from k3.checkpoint.source import Source, mapped
from k3.checkpoint.survey import EXPERT, Survey, survey
from k3.config import K3Config
from k3.errors import RequestError
from k3.kernels import mx
from k3.model import Model, stored

EXPERTS = ("packed", "dequantized", "mmap")
WEIGHTS = ("widened", "stored")
Progress = Callable[[int, int], None]


def load(
    directory: str | os.PathLike[str],
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
    experts: str = "packed",
    weights: str = "widened",
    progress: Progress | None = None,
) -> Model:
    """Return the model of a directory, or of the built-in name "tiny".

    `dtype` is that of the trunk, None for the released bfloat16. `experts`: "packed"
    keeps them as the files do (MXFP4 bytes, or dense), "dequantized" holds exact
    values in `dtype`, "mmap" leaves them in the files, whose pages come in with use.
    `weights`: "widened" holds matrices in `dtype`; "stored" in the bfloat16 of the
    files, widened where they are used: the same results from half of the memory, for
    inference alone, since nothing of such a model has gradients.
    `progress(done, total)` is called with bytes.
    Raises: CheckpointError listing everything that is missing, unexpected, damaged
    or of another shape or dtype, before any parameter exists, and then all weights
    that are not finite; ConfigError; RequestError for an unknown option.
    The model's weight_version is that of the files: another process that loads them
    may restore its states.
    """
    dtype, device = dtype or torch.bfloat16, torch.device(device)
    _check_options(dtype, device, experts, weights)
    folder = locate.locate(directory)
    found = survey(folder, K3Config.load(folder))
    _check_storage(found, experts)
    packed = found.experts == "packed" and experts != "dequantized"
    kind = "packed" if packed else "dequantized"
    with places.Unfilled():
        model = Model(found.config, dtype=dtype, device="meta", experts=kind)
        if weights == "stored" and dtype != stored.FILES:
            places.hold_stored(model)
    # What inference mode made could never take part in a backward pass.
    with torch.inference_mode(False):
        _fill(model, found, device, experts == "mmap", progress)
    model.weight_version = version.weight_version(found)
    return model


def _check_options(
    dtype: torch.dtype, device: torch.device, experts: str, weights: str
) -> None:
    if experts not in EXPERTS:
        raise RequestError(f"experts must be one of {EXPERTS}: got {experts!r}")
    if weights not in WEIGHTS:
        raise RequestError(f"weights must be one of {WEIGHTS}: got {weights!r}")
    if dtype not in mx.DTYPES:
        raise RequestError(f"dtype must be one of {mx.DTYPES} or None: got {dtype}")
    if experts == "mmap" and device.type != "cpu":
        raise RequestError(
            f"experts='mmap' decodes on the CPU: got device {device}; "
            "load with experts='packed'"
        )


def _check_storage(found: Survey, experts: str) -> None:
    if experts == "mmap" and found.experts != "packed":
        raise RequestError(
            "experts='mmap' maps MXFP4 experts: the files hold dense ones; "
            "pack them with k3 convert, or load with experts='dequantized'"
        )


def _fill(
    model: Model,
    found: Survey,
    device: torch.device,
    mmap: bool,
    progress: Progress | None,
) -> None:
    """Read every tensor into the model, in the order of the files."""
    tensors = found.tensors
    if mmap:
        in_files = {name: s for name, s in tensors.items() if EXPERT.fullmatch(name)}
        tensors = {name: s for name, s in tensors.items() if name not in in_files}
        places.hold_mapped(model, mapped(in_files))
    places.materialize(model, device)
    total = sum(stored.entry.nbytes for stored in tensors.values())
    done, wrong = 0, []
    decode = found.experts == "packed" and places.expert_storage(model) == "dense"
    with Source(tensors) as source:
        for name in source.in_order():
            read(model, source, name, decode=decode)
            wrong += _not_finite(model, name)
            done += tensors[name].entry.nbytes
            if progress:
                progress(done, total)
    header.refuse(f"{found.folder} holds weights that are not finite", wrong)


def read(model: Model, source: Source, name: str, *, decode: bool = False) -> None:
    """Read one tensor to its place, of A_log the heads; `decode` packed experts."""
    if decode and EXPERT.fullmatch(name):
        _decode(model, source, name)
    elif name.endswith(".A_log"):
        owner, stored = places.kda_of(model, name), source.tensor(name)
        owner.A_log_stored = len(stored)
        owner.A_log.detach().copy_(stored[: owner.heads])
    else:
        source.into(name, places.place(model, name))


def _not_finite(model: Model, name: str) -> list[str]:
    """Name a tensor with NaN or infinity: both show in its two ends, in one pass."""
    if name.endswith((".A_log", "_packed", "_scale")):
        return []
    target = places.place(model, name)
    if not target.is_floating_point() or not target.numel():
        return []
    ends = [x.item() for x in torch.aminmax(target)]
    bad = [x for x in ends if not math.isfinite(x)]
    return [f"{name} must be finite: got {bad[0]}"] if bad else []


def _decode(model: Model, source: Source, name: str) -> None:
    """Read one packed matrix and its scale as exact values."""
    if name.endswith("_scale"):
        return
    weight = name.removesuffix("_packed")
    target = places.place(model, weight)
    packed, scale = source.tensor(name), source.tensor(f"{weight}_scale")
    if target.device.type == "cpu":
        mx.decode(packed, scale, target.dtype, out=target)
    else:
        target.copy_(mx.decode(packed, scale, target.dtype))
