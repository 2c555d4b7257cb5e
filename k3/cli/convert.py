"""`k3 convert`: pack or unpack MXFP4 experts, reshard."""

from typing import Annotated

import typer

from k3.cli import options


def convert(
    source: Annotated[str, typer.Argument(metavar="SRC", help="A checkpoint folder.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="A folder to write.")],
    *,
    json: options.Json = False,
) -> int:
    """Write a checkpoint in another form.

    \b
    k3 convert tiny unpacked
    """
    raise NotImplementedError
