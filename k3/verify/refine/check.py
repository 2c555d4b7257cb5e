"""A claim about a checkpoint: what was checked, the verdict, and what proves it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from k3.errors import ProofError, RequestError
from k3.model import Model
from k3.proof import listing
from k3.verify.exact.report import Report

# Beyond so many parameters exact arithmetic takes hours: it is left out, and said so.
EXACT_PARAMETERS = 20_000_000
# Errors over the largest value that rounding alone stays below, by dtype. Values inside
# a deep model are allowed more than its logits.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 1e-1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was checked. `kind` is exact, float, bits or skipped.

    `detail` holds the figures, `first` where the two sides part. What was skipped
    counts neither for nor against the claim.
    """

    what: str
    kind: str
    ok: bool
    detail: str = ""
    first: str = ""

    def line(self) -> str:
        """One line for a person, a second where the sides part."""
        mark = "--" if self.kind == "skipped" else ("ok" if self.ok else "DIFF")
        text = f"  {mark:4} {self.kind:7} {self.what}"
        text += f": {self.detail}" if self.detail else ""
        return f"{text}\n       first: {self.first}" if self.first else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A model and how much of a claim is run on it.

    `seeds` is the number of random points of exact arithmetic: the chance of a false
    "equal" is one seed's to that power.
    """

    model: Model
    tokens: int = 40
    seed: int = 0
    seeds: int = 2
    exact: bool = True
    tolerance: float | None = None

    def __post_init__(self) -> None:
        """Refuse fewer tokens than the claims need to differ in, and no seed."""
        if self.tokens < 8:
            raise RequestError(
                f"a claim is checked on at least 8 tokens: got {self.tokens}; give more"
            )
        if self.seeds < 1:
            raise RequestError(
                f"exact arithmetic takes at least 1 seed: got {self.seeds}; leave "
                "--seeds out for 2, or give more"
            )

    @property
    def bound(self) -> float:
        """The largest error that counts as rounding."""
        usual = TOLERANCE[self.model.dtype]
        return usual if self.tolerance is None else self.tolerance

    @property
    def ids(self) -> list[int]:
        """Random tokens, without the places of pictures."""
        generator = torch.Generator().manual_seed(self.seed)
        words = self.model.config.text.vocab_size
        drawn = torch.randint(0, words - 1, (self.tokens,), generator=generator)
        place = self.model.config.media_placeholder_token_id
        found: list[int] = drawn.tolist()
        return [words - 1 if i == place else i for i in found]

    @property
    def too_large(self) -> bool:
        """Whether exact arithmetic over the whole model would take too long."""
        size = sum(x.numel() for x in self.model.state_dict().values())
        return size > EXACT_PARAMETERS


Run = Callable[[Setting], Iterator[Check]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence, the checks of it, and the theorems that hold for all sizes."""

    name: str
    says: str
    run: Run
    theorems: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Outcome:
    """A claim with what was found."""

    claim: Claim
    checks: list[Check] = field(default_factory=list)
    theorems: Sequence[listing.Entry] = ()

    @property
    def ok(self) -> bool:
        """Nothing that was checked differs."""
        return all(c.ok for c in self.checks)

    @property
    def verdict(self) -> str:
        """holds, FAILS, or not checked where everything was skipped."""
        ran = any(c.kind != "skipped" for c in self.checks)
        return "FAILS" if not self.ok else ("holds" if ran else "not checked")

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "claim": self.claim.name,
            "says": self.claim.says,
            "ok": self.ok,
            "verdict": self.verdict,
            "checks": [
                {n: getattr(c, n) for n in ("what", "kind", "ok", "detail", "first")}
                for c in self.checks
            ],
            "theorems": [
                {"name": t.name, "level": t.level, "for": t.scope, "says": t.words}
                for t in self.theorems
            ],
        }

    def __str__(self) -> str:
        lines = [f"{self.claim.name}: {self.claim.says}"]
        lines += [c.line() for c in self.checks]
        return "\n".join([*lines, self.closing()])

    def closing(self) -> str:
        """The theorems with their levels and scopes, and the verdict."""
        lines = ["  in general, by k3 prove:"]
        for t in self.theorems:
            lines.append(f"       {t.name} (level {t.level}; {t.scope})")
        return "\n".join([*lines, f"  {self.verdict}"])


def theorems(names: Sequence[str]) -> list[listing.Entry]:
    """The theorems of these names, as they were last proved.

    Raises: ProofError for a name that no theorem has, or one that lost its level.
    """
    known = {entry.name: entry for entry in listing.entries()}
    gone = [n for n in names if n not in known or known[n].level == "?"]
    if gone:
        raise ProofError(
            f"a claim names theorems that are proved: got {', '.join(gone)}; correct "
            "the name, or prove it again with k3 prove"
        )
    return [known[name] for name in names]


def skipped(what: str, why: str) -> Check:
    """Something that was left out, and why."""
    return Check(what=what, kind="skipped", ok=True, detail=why)


def exactly(what: str, report: Report) -> Check:
    """A verdict of exact arithmetic."""
    detail = f"{report.verdict}, {report.compared} values"
    if report.cut_points:
        detail += f" and {report.cut_points} cut points"
    if report.bound == report.bound:
        of = "1 seed" if report.seeds == 1 else f"{report.seeds} seeds"
        detail += f", error bound {report.bound:.0e} ({of}, {report.bits} bits)"
    where = f", from {report.place}" if report.place else ""
    first = "" if report else f"{report.difference or report.problem}{where}"
    ok = bool(report)
    return Check(what=what, kind="exact", ok=ok, detail=detail, first=first)
