"""`k3 convert`: pack or unpack MXFP4 experts, cut into other shards."""

import re
from typing import Annotated

import typer

from k3.cli import options, output
from k3.errors import RequestError

UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}


def convert(
    source: Annotated[
        str, typer.Argument(metavar="SRC", help="A checkpoint folder, or tiny.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="DST", help="A new folder; never written over.")
    ],
    *,
    experts: Annotated[
        str, typer.Option(help="packed (MXFP4), dense (bfloat16), or keep.")
    ] = "keep",
    max_shard: Annotated[
        str, typer.Option(metavar="SIZE", help="Most bytes in a file: 500MB, 5GB.")
    ] = "5GB",
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what would be written, write nothing."),
    ] = False,
    json: options.Json = False,
) -> None:
    """Write a checkpoint with its experts packed or unpacked, or in other shards.

    \b
    k3 convert tiny /tmp/tiny-dense --experts dense
    k3 convert tiny /tmp/tiny-small --max-shard 500kB --dry-run
    k3 convert /tmp/tiny-dense /tmp/tiny-again --experts packed
    """
    limit = parse_size(max_shard)
    from k3.checkpoint.convert import convert as run
    from k3.checkpoint.progress import shown

    with shown("convert", quiet=json or dry_run) as progress:
        plan = run(
            source,
            target,
            experts=None if experts == "keep" else experts,
            max_shard_bytes=limit,
            dry_run=dry_run,
            progress=progress,
        )
    if json:
        output.json_value({"written": not dry_run, **plan.to_dict()})
        return
    print(plan.describe())
    print("nothing written (--dry-run)" if dry_run else f"written: {target}")


def parse_size(text: str) -> int:
    """Bytes of a size such as 500MB; decimal units."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMG]B)?", text.strip())
    if not found or float(found[1]) <= 0:
        raise RequestError(
            f"--max-shard must be a size such as 500MB or 5GB: got {text!r}"
        )
    return int(float(found[1]) * UNITS[found[2] or ""])
