"""Proving the theorems by name, with everything that is claimed about each.

    from k3 import proof
    proof.prove("scan.append"); proof.prove_all(seed=1)

A theorem's statement is first tried on random models, then proved, then compared
with what was proved; each wrong variant must be refuted with concrete inputs.
"""

import importlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from k3.errors import ProofError
from k3.logic import analysis, check, falsify, log, show, smt
from k3.logic.kernel import Thm
from k3.proof.theorem import Theorem

CONCEPTS = (
    "scan",
    "situ",
    "streaming",
    "kda",
    "norm",
    "rl",
    "teachers",
    "muon",
    "muon_gram",
    "mx",
    "mx_codes",
    "mx_block",
    "balance",
    "threshold",
    "histogram",
    "bins",
    "center",
    "speculate",
    "moe",
    "route",
    "attn_res",
    "context",
    "window",
    "draft",
    "mla",
    "mla_run",
    "experts",
    "rounding",
    "loss",
    "cache",
    "budget",
    "cache_search",
    "config",
    "config_sizes",
    "probability",
    "mixture",
    "rms",
    "chat",
    "chat_calls",
    "masked_loss",
    "masked_gradient",
    "draft_loss",
    "substitution",
    "decay",
    "chunk",
    "chunks",
    "verified",
    "block",
    "absorbed",
    "packed_depth",
    "packed_mix",
    "fill",
    "pull",
    "planner",
    "remote",
    "lipschitz",
    "quantized",
    "embed",
    "fractional",
    "mxfp8",
)
AXIOMS = frozenset(a for th in analysis.AXIOMS for a in th.axioms)


@dataclass(frozen=True, kw_only=True)
class Record:
    """A proved theorem: what it says, how far it goes, what it rests on."""

    name: str
    words: str
    statement: str
    scope: str
    level: str
    axioms: tuple[str, ...]
    digest: str
    steps: int
    seconds: float
    mutants: Mapping[str, str]


def theorems() -> dict[str, Theorem]:
    """Every theorem by `concept.name`, in order."""
    return {
        f"{concept}.{name}": theorem
        for concept in CONCEPTS
        for name, theorem in importlib.import_module(
            f"k3.proof.{concept}"
        ).THEOREMS.items()
    }


def prove(name: str) -> Record:
    """Prove one theorem anew and refute its wrong variants."""
    found = theorems()
    if name not in found:
        near = ", ".join(n for n in found if name in n) or "see k3.proof.theorems()"
        raise ProofError(f"no theorem is called {name}: {near}")
    with smt.session():
        return _record(name, found[name])[0]


def prove_all(
    *,
    seed: int = 0,
    cache: Path | None = None,
    check_log: bool = True,
    progress: Callable[[Record], None] = lambda _: None,
    failures: dict[str, str] | None = None,
) -> list[Record]:
    """Prove everything, from an empty cache unless one is given.

    With `check_log` the proof log of all theorems is repeated by the second checker.
    A theorem that fails does not stop the others: `failures` gets its name and the
    reason, or, where none is given, one ProofError at the end names them all.
    """
    pairs: list[tuple[Record, Thm]] = []
    failed: dict[str, str] = {} if failures is None else failures
    with smt.session(seed=seed, cache=cache):
        for name, theorem in theorems().items():
            try:
                pairs.append(_record(name, theorem))
            except ProofError as error:
                failed[name] = str(error)
            else:
                progress(pairs[-1][0])
    if check_log:
        _repeat(pairs)
    if failed and failures is None:
        raise ProofError(unproved(failed))
    return [record for record, _ in pairs]


def unproved(failed: Mapping[str, str]) -> str:
    """The theorems that failed, with the reason of each."""
    what = "1 theorem is" if len(failed) == 1 else f"{len(failed)} theorems are"
    reasons = (
        reason if name in reason else f"{name}: {reason}"
        for name, reason in failed.items()
    )
    return "\n".join([f"{what} not proved", *(f"  {reason}" for reason in reasons)])


def _repeat(pairs: list[tuple[Record, Thm]]) -> None:
    """The second checker on the log of all that was proved."""
    proved = {r.name: th for r, th in pairs}
    checked = check.check(log.write(proved), {r.name: r.digest for r, _ in pairs})
    for record, _ in pairs:
        if checked[record.name].level != record.level:
            raise ProofError(f"the checker finds another level for {record.name}")


def _record(name: str, theorem: Theorem) -> tuple[Record, Thm]:
    began = time.perf_counter()
    statement = theorem.statement()
    found = falsify.falsify(statement, tries=60)
    if found is not None:
        raise ProofError(f"{name} is false: {found}")
    th = theorem.proof()
    if th.concl is not statement or th.hyps:
        raise ProofError(f"{name} states {statement!r}, its proof shows {th!r}")
    if not th.axioms <= AXIOMS:
        raise ProofError(f"{name} uses axioms that are not those of analysis")
    mutants = dict(_refuted(name, theorem))
    record = Record(
        name=name,
        words=" ".join((theorem.statement.__doc__ or "").split()),
        statement=show.statement(statement),
        scope=theorem.scope,
        level=log.level(th),
        axioms=tuple(sorted(n for n, _ in th.axioms)),
        digest=log.digest(statement),
        steps=sum(1 for _ in log.steps(th)),
        seconds=time.perf_counter() - began,
        mutants=mutants,
    )
    return record, th


def _refuted(name: str, theorem: Theorem) -> Iterator[tuple[str, str]]:
    for mutant, phi in theorem.mutants().items():
        given = theorem.hints.get(mutant)
        found = falsify.falsify(phi, tries=3000, given=given)
        if found is None:
            raise ProofError(f"the wrong variant of {name} is not refuted: {mutant}")
        yield mutant, str(found)


def article() -> dict[str, dict[str, str]]:
    """The article's theorems: `ours`, `generalized_by` or the reason of a `limit`."""
    text = (resources.files("k3.proof") / "article.json").read_text()
    found: dict[str, dict[str, str]] = json.loads(text)
    return found
