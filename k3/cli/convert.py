"""`k3 convert`: pack or unpack MXFP4 experts, cut into other shards."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from k3.cli import loading, options, output, settings
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.checkpoint.convert import Plan

# What --experts takes: dequantized is the word that a load has for dense.
EXPERTS = {"packed": "packed", "dense": "dense", "dequantized": "dense", "keep": None}
# Below this a conversion takes less time than reading how far it is.
QUIET_BYTES = 100_000_000
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
    settings.one_of("--experts", experts, EXPERTS)
    folder = loading.find(source)
    from k3.checkpoint.convert import convert as run
    from k3.checkpoint.progress import shown

    with shown("convert", quiet=json or dry_run) as progress:
        plan = run(
            folder,
            target,
            experts=EXPERTS[experts],
            max_shard_bytes=limit,
            dry_run=dry_run,
            progress=only_large(progress),
        )
    if json:
        output.json_value({"written": not dry_run, **plan.to_dict()})
        return
    print("\n".join(lines(plan)))
    print("nothing written (--dry-run)" if dry_run else f"written: {target}")


def only_large(
    progress: Callable[[int, int], None] | None,
) -> Callable[[int, int], None] | None:
    """The same progress, silent where the whole is small."""
    if progress is None:
        return None
    return lambda done, total: progress(done, total) if total >= QUIET_BYTES else None


def lines(plan: "Plan") -> list[str]:
    """The plan for a person: what becomes of the experts, sizes, files."""
    from k3.checkpoint.report import size

    recoded = counted(plan.num_recoded, "matrix", "matrices")
    kept = plan.held == plan.experts
    change = f"stay {plan.held}" if kept else f"{plan.held} -> {plan.experts}"
    sizes = f"{size(plan.source_bytes)} -> {size(plan.total_bytes)}"
    return [
        f"{plan.source} -> {plan.target}",
        f"experts {change}" + ("" if kept else f": {recoded}"),
        f"{counted(plan.num_tensors, 'tensor')}, {sizes}",
        *(
            f"  {shard.name}  {counted(len(shard.tensors), 'tensor')}  "
            f"{size(shard.nbytes)}"
            for shard in plan.shards
        ),
        *(f"  {name}  copied" for name in plan.side_files),
    ]


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun in the right number."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def parse_size(text: str) -> int:
    """Bytes of a size such as 500MB; decimal units."""
    found = re.fullmatch(r"(\d{1,18}(?:\.\d+)?)\s*([kMG]B)?", text.strip())
    if not found or float(found[1]) <= 0:
        raise RequestError(
            f"--max-shard must be a size such as 500MB or 5GB: got {text!r:.80}"
        )
    return int(float(found[1]) * UNITS[found[2] or ""])
