"""`k3 convert`: pack or unpack MXFP4 experts, cut into other shards."""

import re

from k3.cli import options, output
from k3.errors import RequestError

UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}


def convert(
    source: options.Source,
    target: options.Target,
    *,
    experts: options.Storage = "keep",
    max_shard: options.MaxShard = "5GB",
    dry_run: options.DryRun = False,
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
