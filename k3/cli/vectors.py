"""`k3 vectors`: inputs, intermediate values and outputs of operators and models."""

from pathlib import Path
from typing import Any

from k3.cli import loading, options, output, settings
from k3.errors import RequestError

ALL = "all"


def vectors(
    words: options.Words,
    *,
    dtype: options.VectorDtype = "float32",
    seed: options.DrawSeed = 0,
    tokens: options.CheckedTokens = 12,
    json: options.Json = False,
) -> int:
    """List the operators, or write the vectors of one, or of a checkpoint.

    \b
    k3 vectors list
    k3 vectors export kda.chunk /tmp/kda --dtype bfloat16
    k3 vectors export tiny /tmp/tiny --tokens 20
    """
    settings.one_of("--dtype", dtype, loading.DTYPES[1:])
    if words == ["list"]:
        return show_list(as_json=json)
    if len(words) != 3 or words[0] != "export":
        raise RequestError(
            f"vectors takes list, or export OP|MODEL DIR: got {' '.join(words)}; "
            "k3 vectors list names the operators"
        )
    written = export(words[1], Path(words[2]), dtype=dtype, seed=seed, tokens=tokens)
    if json:
        output.json_value(written)
    else:
        for file, about in written["files"].items():
            count, size = len(about["arrays"]), about["bytes"]
            print(f"{file:16} {count:4} arrays, {size:,} bytes")
        print(f"{words[2]}/manifest.json: shapes, layouts, seeds and hashes")
    return 0


def export(
    name: str, folder: Path, *, dtype: str, seed: int, tokens: int
) -> dict[str, Any]:
    """Write an operator's vectors, or a model's if the name is a checkpoint."""
    import torch

    from k3.verify.operators import OPERATORS, find
    from k3.verify.vectors import export_model, export_operator

    if name in OPERATORS:
        chosen: torch.dtype = getattr(torch, dtype)
        return export_operator(name, folder, dtype=chosen, seed=seed)
    if not Path(name).exists() and name != "tiny":
        find(name)
    path = loading.find(name)
    loaded = loading.load(path, dtype=dtype, device="auto", experts="packed")
    return export_model(loaded.model, folder, tokens=tokens, seed=seed)


def show_list(*, as_json: bool) -> int:
    """Each operator with its equation, its inputs and its outputs."""
    from k3.verify.operators import OPERATORS

    if as_json:
        described = {
            name: {
                "says": op.says,
                "layouts": dict(op.layouts),
                "outputs": list(op.outputs),
                "exact": op.exact,
            }
            for name, op in OPERATORS.items()
        }
        output.json_value(described)
        return 0
    for name, op in OPERATORS.items():
        inputs = ", ".join(op.inputs())
        print(f"{name:20} {op.says}\n{'':20} ({inputs}) -> {', '.join(op.outputs)}")
    return 0
