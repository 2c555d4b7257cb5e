"""`k3 inspect`: what a checkpoint is, from its headers alone."""

from k3.cli import options, output

CHECK_FAILED = 1
# Configurations that need no files: nobody's disk holds them by chance.
RECIPES = ("released", "paper")


def inspect(
    model: options.ModelOrConfig = "tiny",
    *,
    tokens: options.ContextTokens = 4096,
    json: options.Json = False,
) -> int:
    """Config and tensor verdicts, parameters, bytes, memory; exit 1 for a bad one.

    \b
    k3 inspect
    k3 inspect paper --tokens 1000000
    k3 inspect tests/golden/tiny_release --json
    """
    from pathlib import Path

    from k3 import recipes
    from k3.checkpoint.inspect import inspect as examine
    from k3.checkpoint.locate import locate

    if model in RECIPES and not Path(model).exists():
        config = getattr(recipes, model)()
        report = examine(config, context_tokens=tokens, name=model)
    else:
        path = Path(model) if Path(model).name == "config.json" else locate(model)
        report = examine(path, context_tokens=tokens, name=model)
    if json:
        output.json_value(report.to_dict())
    else:
        print("\n".join(report.lines()))
    return 0 if report.ok else CHECK_FAILED
