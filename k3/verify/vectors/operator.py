"""Vectors of one operator: inputs, every intermediate value, outputs."""

from pathlib import Path
from typing import Any

import torch

from k3.kernels import choose
from k3.verify.operators import find
from k3.verify.operators.operator import rounded
from k3.verify.vectors import capture, files

NAMES = {torch.float64: "float64", torch.float32: "float32", torch.bfloat16: "bfloat16"}
NOTE = (
    "inputs.npz: as they are passed, after rounding to the dtype. float64.npz: out.* "
    "and, step by step, eq.* by the equation, mid.* by the kernel, in float64 on these "
    "inputs. The file of the dtype: out.* and mid.* of the kernel in it. Values are "
    "named file.function.variable; bfloat16 is stored as its 16 bits in uint16"
)


def export_operator(
    name: str, folder: str | Path, *, dtype: torch.dtype = torch.float32, seed: int = 0
) -> dict[str, Any]:
    """Write the vectors of an operator into a new folder; returns the manifest.

    Raises: RequestError for an unknown operator or a folder that holds anything.
    """
    operator, folder = find(name), Path(folder)
    files.new_folder(folder)
    given = rounded(operator.inputs(seed), dtype)
    wide = rounded(given, torch.float64)
    with capture.intermediates(capture.EQUATIONS) as steps:
        truth = operator.expected(given)
    files.save(folder, "inputs.npz", files.arrays(given))
    middle, _ = _run(operator, wide)
    whole = files.arrays(truth, "out.") | files.arrays(steps, "eq.")
    files.save(folder, "float64.npz", whole | files.arrays(middle, "mid."))
    if dtype is not torch.float64:
        middle, out = _run(operator, given)
        both = files.arrays(out, "out.") | files.arrays(middle, "mid.")
        files.save(folder, f"{NAMES[dtype]}.npz", both)
    about = {
        "operator": name,
        "says": operator.says,
        "dtype": NAMES[dtype],
        "seed": seed,
        "layouts": dict(operator.layouts),
        "outputs": list(operator.outputs),
        "tolerance": operator.bound(dtype),
        "note": NOTE,
    }
    return files.manifest(folder, about)


def _run(operator: Any, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    # PyTorch's form: native kernels keep their intermediate values to themselves.
    with torch.no_grad(), choose.use("torch"), capture.intermediates() as found:
        out = operator.named(operator.program(**given))
    return found, out
