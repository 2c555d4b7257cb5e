"""Every intermediate value of a computation: what locals held, and what was returned.

The names are those of the source, so a value is found where it is computed:
`kda.chunk.decay` of the kernel, `kda.update[2].decayed` of the equation's third call,
`kda.update[2].returns` for its result.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
from torch import Tensor

import k3

ROOT = Path(k3.__file__).parent
RUNNING = (str(ROOT / "kernels"), str(ROOT / "model"))
EQUATIONS = (str(ROOT / "spec"),)
# What moves and converts, and changes no value.
MOVES = ("lift", "reshape", "stack", "_stack", "concat", "_concat", "transpose")
SKIPPED = ("precision.wide", *(f"operations.{name}" for name in MOVES))


@contextmanager
def intermediates(folders: tuple[str, ...] = RUNNING) -> Iterator[dict[str, Any]]:
    """The arrays of all functions in these folders that end inside, by name."""
    found: dict[str, Any] = {}
    calls: Counter[str] = Counter()

    def profile(frame: FrameType, event: str, result: Any) -> None:
        code = frame.f_code
        if event == "return" and code.co_filename.startswith(folders):
            _keep(found, calls, frame, result)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(before)


def _keep(found: Any, calls: Counter[str], frame: FrameType, result: Any) -> None:
    code = frame.f_code
    name = f"{Path(code.co_filename).stem}.{code.co_name}"
    if "<" in name or name in SKIPPED:
        return
    call = calls[name]
    calls[name] += 1
    # The first call has no number: most functions are called once.
    at = f"{name}[{call}]" if call else name
    given = _arguments(code)
    local = {n: x for n, x in frame.f_locals.items() if n not in given}
    many = isinstance(result, tuple)
    ends = {f"returns.{i}": x for i, x in enumerate(result)} if many else {}
    for key, value in (local | (ends or {"returns": result})).items():
        if isinstance(value, Tensor):
            found[f"{at}.{key}"] = value.detach().clone()
        elif isinstance(value, np.ndarray) and value.dtype != object:
            found[f"{at}.{key}"] = value.copy()


def _arguments(code: CodeType) -> tuple[str, ...]:
    """Names of the parameters: what they hold was kept where it was made."""
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
