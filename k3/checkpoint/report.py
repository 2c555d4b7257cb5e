"""The report of `k3 inspect`, as values and as lines of text."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from k3.checkpoint.header import first
from k3.config import sizes

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tensors:
    """What the layout asks for, and what the files' headers hold."""

    expected_count: int
    expected_bytes: int
    present: bool = False
    count: int = 0
    files: int = 0
    nbytes: int = 0
    experts: str = ""
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """Verdicts and sizes; what cannot be known without a good config is None."""

    model: str
    config_problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    summary: str = ""
    tensors: Tensors | None = None
    parameters: sizes.Parameters | None = None
    memory: sizes.Memory | None = None
    row_scalars: tuple[int, int] = field(default=(0, 0))

    @property
    def ok(self) -> bool:
        """Whether config and tensors are as they should be; no weights is no fault."""
        return not self.config_problems and not (self.tensors and self.tensors.problems)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        values = {"ok": self.ok, **asdict(self)}
        if self.memory:
            values["memory"] |= {
                "fixed_bytes": self.memory.fixed_bytes,
                "sequence_bytes": self.memory.sequence_bytes,
            }
        return values

    def lines(self) -> list[str]:
        """Return the report as text."""
        return [*self._config(), *self._tensors(), *self._sizes(), *self._memory()]

    def _config(self) -> Iterator[str]:
        yield f"{self.model}: {self.summary}" if self.summary else self.model
        yield from _verdict("config", "ok", self.config_problems)
        yield from (f"  note: {note}" for note in self.notes)

    def _tensors(self) -> Iterator[str]:
        if (t := self.tensors) is None:
            return
        expected = f"{t.expected_count:,} tensors, {size(t.expected_bytes)}"
        if not t.present:
            yield f"tensors     no weights here; the layout asks for {expected}"
            return
        found = f"{t.count:,} tensors in {t.files} files, {size(t.nbytes)}"
        yield from _verdict("tensors", f"ok: {found}, experts {t.experts}", t.problems)

    def _sizes(self) -> Iterator[str]:
        if (count := self.parameters) is None:
            return
        padding = f", {count.padding:,} of them A_log padding" if count.padding else ""
        yield f"parameters  {count.total:,} in the released layout{padding}"
        yield f"            {count.active:,} active for a text token"
        for name, number in count.components.items():
            yield f"  {name:<16}{number:>21,}"
        if count.mtp:
            yield f"  {'mtp, apart':<16}{count.mtp:>21,}"

    def _memory(self) -> Iterator[str]:
        if (m := self.memory) is None:
            return
        row, expanded = self.row_scalars
        yield (
            f"memory      {size(m.mla_bytes_per_token)} per token "
            f"({row:,} scalars in each MLA layer; {expanded:,} if expanded)"
        )
        yield (
            f"            {size(m.fixed_bytes)} per sequence (KDA states "
            f"{size(m.kda_state_bytes)}, convolutions {size(m.conv_window_bytes)})"
        )
        total = size(m.sequence_bytes)
        yield f"            {total} for one sequence of {m.context_tokens:,} tokens"


def size(nbytes: int) -> str:
    """Return a byte count in decimal units, exact below a million."""
    if nbytes < 1_000_000:
        return f"{nbytes:,} B"
    value, unit = float(nbytes), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.2f} {_UNITS[unit]}"


def _verdict(what: str, good: str, problems: tuple[str, ...]) -> Iterator[str]:
    if not problems:
        yield f"{what:<12}{good}"
        return
    yield f"{what:<12}{len(problems)} wrong"
    yield from first(problems, "--json lists all")
