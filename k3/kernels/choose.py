"""Which implementation a kernel takes: native (C++), fla and Triton (CUDA) or PyTorch.

K3_KERNELS=torch|native|fla asks for one; without it the best one that is there is
taken: native for fp32 and bf16 on a CPU; on CUDA, where installed, fla-core for KDA and
Triton for what fla-core has nothing for; PyTorch otherwise. Where one was asked for and
is not there, that is an error. PyTorch's form takes every tensor that is not plain: it
is what autograd of autograd, torch.func, fake tensors and k3.verify see.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.autograd import forward_ad

from k3 import errors
from k3.kernels.native import library, pages

NAMES = ("torch", "native", "fla")
PLAIN = (Tensor, torch.nn.Parameter)
FLOATS = (torch.float32, torch.bfloat16)
SINGLE = (torch.float32,)
MANY_ROWS = 4
"""Rows from which on a product is packed; so many a PyTorch's row keeps its bits."""

CUDA = {"fla": "fla-core", "triton": "triton"}
"""Modules of the extra gpu, and the packages that hold them."""

# Found once: a step of a model waits for each part of a path of names.
_modes = torch._C._len_torch_dispatch_stack
_transforms = torch._C._functorch.peek_interpreter_stack
_compiles = torch.compiler.is_compiling

_asked: list[str | None] = []
_native: bool | None = None


def asked() -> str | None:
    """The implementation that was asked for; None is the best one there is.

    Raises: ConfigError for a name that is none, and for one that is not there.
    """
    if _asked:
        return _asked[-1]
    return _checked(os.environ.get("K3_KERNELS") or None)


@contextmanager
def use(name: str | None) -> Iterator[None]:
    """Ask for an implementation for a while, whatever K3_KERNELS says."""
    global _native
    _asked.append(_checked(name))
    _native = None
    try:
        yield
    finally:
        _asked.pop()
        _native = None


def native(*tensors: Tensor, dtypes: tuple[torch.dtype, ...] = FLOATS) -> bool:
    """Whether the native form takes these: plain tensors on the CPU, and no mode.

    A caller whose kernel has no backward pass also asks `recorded`. Never while
    torch.compile traces: see `operation`.
    """
    if _compiles():
        return False
    if not ready() or _watched():
        return False
    return all(type(x) in PLAIN and x.is_cpu and x.dtype in dtypes for x in tensors)


def operation(*tensors: Tensor, dtypes: tuple[torch.dtype, ...] = FLOATS) -> bool:
    """Whether a native form takes these that is one operation, traced or not."""
    if not torch.compiler.is_compiling():
        return native(*tensors, dtypes=dtypes)
    return ready() and all(
        type(x) in PLAIN and x.device.type == "cpu" and x.dtype in dtypes
        for x in tensors
    )


def unseen(x: Tensor) -> bool:
    """Whether x is a plain tensor and nothing looks at what is done with it."""
    return type(x) in PLAIN and not torch.compiler.is_compiling() and not _watched()


def packs(x: Tensor, *weights: Tensor) -> bool:
    """Whether the native product of packed panels takes these rows: fp32, unrecorded.

    PyTorch's is the faster one for few rows and at the portable level.
    """
    return (
        x.numel() >= MANY_ROWS * x.shape[-1]
        and not torch.is_autocast_enabled("cpu")
        and not recorded(x, *weights)
        and native(x, dtypes=SINGLE)
        and native(*weights)
        and library.level() != "portable"
    )


def ready() -> bool:
    """Whether native kernels are there and not switched off."""
    global _native
    if _native is None:
        _native = asked() in (None, "native") and library.load() is not None
    return _native


# What torch.compiler.assume_constant_result does, which imports all of the compiler
# first: 80 MB and a second that a program which compiles nothing should not pay.
vars(ready)["_dynamo_marked_constant"] = True


def fla(*tensors: Tensor, exact: bool) -> bool:
    """Whether fla-core's KDA takes these: plain fp32 tensors on CUDA, and no mode.

    `exact` says that their products are wanted in fp32, which fla rounds to TF32: then
    only where fla was asked for, or PyTorch's own products may be rounded too.
    """
    if not _on_cuda(tensors, SINGLE) or not installed("fla"):
        return False
    rounding = torch.get_float32_matmul_precision() != "highest"
    return asked() == "fla" or not exact or rounding


def triton(*tensors: Tensor, dtypes: tuple[torch.dtype, ...] = FLOATS) -> bool:
    """Whether the Triton form takes these: plain tensors on CUDA, and no mode."""
    return _on_cuda(tensors, dtypes) and installed("triton")


@cache
def installed(module: str) -> bool:
    """Whether a module of the extra gpu is there."""
    return find_spec(module) is not None


def _on_cuda(tensors: tuple[Tensor, ...], dtypes: tuple[torch.dtype, ...]) -> bool:
    return (
        all(x.is_cuda for x in tensors)
        and not torch.compiler.is_compiling()
        and asked() in (None, "fla")
        and not _watched()
        and all(type(x) in PLAIN and x.dtype in dtypes for x in tensors)
    )


def recorded(*tensors: Tensor) -> bool:
    """Whether autograd will want gradients of what is made of these."""
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


def lines() -> dict[str, str]:
    """What `k3 env` prints: the native level, or why there is none, and the choice."""
    here = library.level()
    return {
        "native": here or f"absent: {library.absent()}",
        "code": _code() if here else "no native kernels",
        "kernels": asked() or f"automatic ({'native' if here else 'torch'} on a CPU)",
        "cuda": ", ".join(_cuda_lines()),
    }


def _code() -> str:
    if pages.own_code():
        return "in a large page"
    return "in small pages: this system gives it no large one"


def _cuda_lines() -> Iterator[str]:
    """What runs on CUDA: the packages with their versions, or why there are none."""
    if not torch.cuda.is_available():
        yield "absent: torch sees no CUDA device"
        return
    for module, package in CUDA.items():
        here = installed(module)
        yield f"{package} {version(package)}" if here else f"no {package}: k3[gpu]"


def _watched() -> bool:
    """Whether something looks at every operation, or wraps tensors unseen."""
    return bool(_modes() or _transforms() is not None or forward_ad._current_level >= 0)


def _checked(name: str | None) -> str | None:
    if name is not None and name not in NAMES:
        raise errors.ConfigError(
            f"K3_KERNELS must be one of {', '.join(NAMES)}: got {name}; choose one of "
            "them or unset it"
        )
    if name == "native" and library.load() is None:
        raise errors.ConfigError(
            f"K3_KERNELS=native needs the native kernels: {library.absent()}"
        )
    if name == "fla" and not (torch.cuda.is_available() and find_spec("fla")):
        raise errors.ConfigError(
            "K3_KERNELS=fla needs a CUDA device and fla-core: got neither or one of "
            "them; unset it or install fla-core on a machine with CUDA"
        )
    return name
