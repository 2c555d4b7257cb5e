"""`k3 compare`: a checkpoint against numbers of the released model."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from k3.cli import loading, options, output
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.verify import Report

CHECK_FAILED = 1


def compare(
    files: options.ModelAndGolden,
    *,
    tolerance: options.Tolerance = None,
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    experts: options.Experts = "packed",
    json: options.Json = False,
) -> int:
    """Run a model against golden numbers; exit 1 where a tensor differs.

    \b
    k3 compare tests/golden/tiny_release tests/golden/tiny_release/golden.npz
    k3 compare - tests/golden/text14.npz --dtype float64
    """
    loading.check(dtype, device, experts)
    model_name, golden_name = names(files)
    path = loading.find(model_name) if model_name else None
    from k3.verify import compare as run
    from k3.verify.compare import seeded_model
    from k3.verify.golden import Golden

    golden = Golden.load(golden_name)
    if path is None:
        where = loading.pick_device(device)
        chosen = loading.pick_dtype(dtype, where)
        model = seeded_model(golden, dtype=chosen, device=where)
    else:
        loaded = loading.load(path, dtype=dtype, device=device, experts=experts)
        model = loaded.model
    found = run(model, golden, tolerance=tolerance)
    if json:
        output.json_value(found.to_dict())
    else:
        print_report(found)
    return 0 if found.ok else CHECK_FAILED


def names(files: list[str]) -> tuple[str, str]:
    """(MODEL or nothing, GOLDEN); anything else is refused with what to write."""
    if len(files) > 2:
        raise RequestError(f"compare takes [MODEL] GOLDEN.npz: got {len(files)} names")
    *models, golden = files
    if len(files) == 2 and models[0].endswith(".npz") and not golden.endswith(".npz"):
        raise RequestError(
            f"the golden file comes last: got {shlex.join(files)}; write k3 compare "
            f"{shlex.join(files[::-1])}"
        )
    if Path(golden).is_dir() or golden == "tiny":
        beside = sorted(Path(golden).glob("*.npz"))
        file = str(beside[0]) if beside else "GOLDEN.npz"
        what = "" if beside else ", a file of numbers that this very model must give"
        raise RequestError(
            f"compare needs a file of numbers: got only the folder {golden}; add it: "
            f"k3 compare {shlex.join([golden, file])}{what}"
        )
    return ("" if models in ([], ["-"]) else models[0]), golden


def print_report(found: "Report") -> None:
    """A line for each tensor, what was left out, and the verdict."""
    for entry in found.entries:
        print(entry.line())
    if found.unknown:
        print(f"not compared: {', '.join(found.unknown)}")
    first = found.first
    print(f"first difference: {first.name}" if first else "all agree")
