"""Convert a checkpoint on disk: pack or unpack its experts, cut it into other shards.

Tensor by tensor: memory holds one expert at a time, never the model.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from k3.checkpoint import locate, lock, recode, save, shards
from k3.checkpoint.names import Table
from k3.checkpoint.source import Source
from k3.checkpoint.survey import EXPERT, Survey, survey, table
from k3.config import K3Config
from k3.errors import CheckpointError


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a conversion writes: shards, storage of the experts, files copied."""

    source: Path
    target: Path
    held: str
    experts: str
    source_bytes: int
    shards: tuple[shards.Shard, ...]
    side_files: tuple[str, ...]

    @property
    def total_bytes(self) -> int:
        """Bytes of all tensors that are written."""
        return sum(shard.nbytes for shard in self.shards)

    @property
    def num_tensors(self) -> int:
        """Tensors that are written."""
        return sum(len(shard.tensors) for shard in self.shards)

    @property
    def num_recoded(self) -> int:
        """Expert matrices that are packed or unpacked on the way."""
        if self.held == self.experts:
            return 0
        names = (name for shard in self.shards for name in shard.tensors)
        return sum(1 for n in names if EXPERT.fullmatch(n) and not n.endswith("_scale"))

    def to_dict(self) -> dict[str, object]:
        """Return the plan as JSON values."""
        return {
            "source": str(self.source),
            "target": str(self.target),
            "experts": {"from": self.held, "to": self.experts},
            "matrices_recoded": self.num_recoded,
            "tensors": self.num_tensors,
            "bytes": {"from": self.source_bytes, "to": self.total_bytes},
            "shards": [
                {"file": s.name, "tensors": len(s.tensors), "bytes": s.nbytes}
                for s in self.shards
            ],
            "side_files": list(self.side_files),
        }

    def describe(self) -> str:
        """Return the plan as lines to print."""
        lines = [
            f"{self.source} -> {self.target}",
            f"experts {self.held} -> {self.experts}: {self.num_recoded} matrices",
            f"{self.num_tensors} tensors, {self.source_bytes} bytes -> "
            f"{self.total_bytes}",
        ]
        for shard in self.shards:
            count = len(shard.tensors)
            lines.append(f"  {shard.name}  {count} tensors  {shard.nbytes} bytes")
        return "\n".join([*lines, *(f"  {name}  copied" for name in self.side_files)])


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    experts: str | None = None,
    max_shard_bytes: int = shards.MAX_SHARD_BYTES,
    dry_run: bool = False,
    progress: shards.Progress | None = None,
) -> Plan:
    """Write the checkpoint `source` to the new directory `target`; return the plan.

    `experts`: "packed" (MXFP4), "dense" (bfloat16), or None to keep them; config.json
    follows, other files are copied. With `dry_run` nothing is written.
    Raises: CheckpointError for a damaged source, or a target that is the source or
    is not empty or being written; RequestError for an unknown option.
    """
    recode.check(experts)
    folder, to = locate.locate(source), Path(target)
    _check_target(folder, to)
    found = survey(folder, K3Config.load(folder))
    wanted = experts or found.experts
    entries = _table(found, wanted)
    plan = Plan(
        source=folder,
        target=to,
        held=found.experts,
        experts=wanted,
        source_bytes=found.total_bytes,
        shards=tuple(shards.split(entries, max_shard_bytes)),
        side_files=tuple(save.side_files(folder)),
    )
    if not dry_run:
        _write(plan, found, entries, progress)
    return plan


def _write(
    plan: Plan, found: Survey, entries: Table, progress: shards.Progress | None
) -> None:
    config = recode.follow(found.config, entries, plan.experts)
    with lock.held(plan.target), Source(found.tensors) as opened:
        # Another convert may have come first, between the check and the lock.
        _check_target(plan.source, plan.target)
        save.copy_side_files(plan.source, plan.target)
        value = recode.Recode(opened.tensor, entries, plan.held, plan.experts)
        shards.write_held(plan.target, list(plan.shards), value, config, progress)


def _table(found: Survey, experts: str) -> Table:
    """Return what is written; A_log keeps the length it has."""
    entries = table(found.config, experts)
    for name, (_, dtype) in entries.items():
        if name.endswith(".A_log"):
            entries[name] = found.tensors[name].entry.shape, dtype
    return entries


def _check_target(source: Path, target: Path) -> None:
    """Refuse to write over the source, or over anything."""
    if source.resolve() == target.resolve():
        raise CheckpointError(
            f"convert writes a new directory: got the source {source} as target"
        )
    if target.exists() and not target.is_dir():
        raise CheckpointError(f"convert writes a directory: {target} is a file")
    if target.is_dir() and any(path.name != lock.LOCK for path in target.iterdir()):
        raise CheckpointError(
            f"convert writes a new directory: {target} is not empty; "
            "empty it or name another"
        )
