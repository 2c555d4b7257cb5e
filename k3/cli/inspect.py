"""`k3 inspect`: what a checkpoint is, from its headers alone."""

from typing import TYPE_CHECKING

from k3.cli import loading, options, output

if TYPE_CHECKING:
    from k3.checkpoint.report import Report

CHECK_FAILED = 1


def inspect(
    model: options.ModelOrConfig = "tiny",
    *,
    tokens: options.ContextTokens = 4096,
    json: options.Json = False,
) -> int:
    """Config and tensor verdicts, parameters, bytes, memory; exit 1 for a bad one.

    \b
    k3 inspect
    k3 inspect released --tokens 1M
    k3 inspect tests/golden/tiny_release --json
    """
    from pathlib import Path

    from k3 import recipes
    from k3.checkpoint.inspect import inspect as examine
    from k3.checkpoint.locate import locate

    if model in loading.CONFIGS and not Path(model).exists():
        config = getattr(recipes, model)()
        report = examine(config, context_tokens=tokens, name=model)
    else:
        path = Path(model) if Path(model).name == "config.json" else locate(model)
        report = examine(path, context_tokens=tokens, name=model)
    if json:
        output.json_value({**report.to_dict(), "run_bytes": run_bytes(report)})
    else:
        print("\n".join([*report.lines(), *total(report)]))
    return 0 if report.ok else CHECK_FAILED


def weights_bytes(report: "Report") -> int:
    """Bytes of the tensors in the files, or of those that the layout asks for."""
    assert report.tensors
    return report.tensors.nbytes or report.tensors.expected_bytes


def run_bytes(report: "Report") -> int | None:
    """Weights as stored and one sequence; None where the config is no good."""
    if not report.memory or not report.tensors:
        return None
    return weights_bytes(report) + report.memory.sequence_bytes


def total(report: "Report") -> list[str]:
    """The line that adds them up."""
    from k3.checkpoint.report import size

    if not report.memory or (whole := run_bytes(report)) is None:
        return []
    weights, sequence = weights_bytes(report), report.memory.sequence_bytes
    return [
        f"            {size(weights)} of weights as stored + {size(sequence)} for one "
        f"sequence = {size(whole)}"
    ]
