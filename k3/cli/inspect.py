"""`k3 inspect`: what a checkpoint is, from its headers alone."""

from typing import Annotated

import typer

from k3.cli import options


def inspect(
    model: options.Model = "tiny",
    *,
    tokens: Annotated[
        int, typer.Option(help="Context length for the memory figures.")
    ] = 4096,
    json: options.Json = False,
) -> int:
    """Config and tensor verdicts, parameters, bytes, memory; exit 1 for a bad one.

    \b
    k3 inspect
    k3 inspect tiny --tokens 100000
    k3 inspect tests/golden/tiny_release --json
    """
    raise NotImplementedError
