"""`k3 compare`: a checkpoint against numbers of the released model."""

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
    if len(files) > 2:
        raise RequestError(f"compare takes [MODEL] GOLDEN.npz: got {len(files)} names")
    from k3.verify import compare as run
    from k3.verify.compare import seeded_model
    from k3.verify.golden import Golden

    golden = Golden.load(files[-1])
    if len(files) == 1 or files[0] == "-":
        where = loading.pick_device(device)
        chosen = loading.pick_dtype(dtype, where)
        model = seeded_model(golden, dtype=chosen, device=where)
    else:
        loaded = loading.load(files[0], dtype=dtype, device=device, experts=experts)
        model = loaded.model
    found = run(model, golden, tolerance=tolerance)
    if json:
        output.json_value(found.to_dict())
    else:
        print_report(found)
    return 0 if found.ok else CHECK_FAILED


def print_report(found: "Report") -> None:
    """A line for each tensor, what was left out, and the verdict."""
    for entry in found.entries:
        print(entry.line())
    if found.unknown:
        print(f"not compared: {', '.join(found.unknown)}")
    first = found.first
    print(f"first difference: {first.name}" if first else "all agree")
