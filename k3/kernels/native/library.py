"""The compiled kernels: found, chosen for this processor, called through ctypes."""

import ctypes
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from k3 import errors
from k3.kernels.native import build

CODES = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "f": ctypes.c_float}
OPENMP = re.compile(r"/lib(gomp|iomp5|omp)\b[^/]*\.so")
BUILD = f"run python {build.__file__}"


@cache
def load() -> ctypes.CDLL | None:
    """The library for this processor, or None where there is none (see `absent`).

    K3_NATIVE_ISA forces a lower level. Raises: ConfigError for one that the processor
    or the build does not have.
    """
    chosen = level()
    if chosen is None:
        return None
    found = ctypes.CDLL(str(build.library(chosen)))
    found.k3_use_omp(ctypes.c_void_p(_gomp_parallel()))
    return found


@cache
def level() -> str | None:
    """The best level that this processor has, or the one that K3_NATIVE_ISA forces."""
    wanted = os.environ.get("K3_NATIVE_ISA")
    if absent() is not None:
        return None
    usable = supported()
    if wanted and wanted not in usable:
        raise errors.ConfigError(
            f"K3_NATIVE_ISA must be one of {', '.join(usable)} on this processor: got "
            f"{wanted}; choose one of them or unset it"
        )
    return wanted or usable[-1]


def supported() -> list[str]:
    """The levels that this processor has, lowest first."""
    probe = ctypes.CDLL(str(build.library("portable")))
    return list(build.levels())[: probe.k3_cpu_level() + 1]


@cache
def absent() -> str | None:
    """Why there is no library, with what to do; None where there is one."""
    if all(build.library(name).exists() for name in build.levels()):
        return None
    if any(build.LIB.glob("*.so")):
        return f"the native kernels are older than their sources; {BUILD}"
    try:
        build.compiler()
    except build.BuildError as error:
        return f"{error}; install g++ and {BUILD}"
    return f"the native kernels have not been built; {BUILD}"


@cache
def function(name: str, signature: str) -> Callable[..., None]:
    """A kernel by name; one letter an argument: p pointer, i integer, f float.

    Call it with `tensor.data_ptr()` and plain numbers: nothing is checked here.
    """
    library = load()
    assert library is not None, "dispatch asks `load` first"
    found: Any = getattr(library, name)
    found.argtypes = [CODES[letter] for letter in signature]
    found.restype = None
    return found


def _gomp_parallel() -> int | None:
    """Address of the parallel loop in the OpenMP runtime that torch has loaded."""
    try:
        maps = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return None
    loaded = dict.fromkeys(line.split()[-1] for line in maps if OPENMP.search(line))
    home = str(Path(torch.__file__).parent)
    for path in sorted(loaded, key=lambda path: not path.startswith(home)):
        start = getattr(ctypes.CDLL(path), "GOMP_parallel", None)
        if start is not None:
            return ctypes.cast(start, ctypes.c_void_p).value
    return None
