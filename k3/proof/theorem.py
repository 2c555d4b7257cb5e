"""What a theorem is here: a statement, its proof, its scope, and its wrong variants."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from k3.logic.kernel import Thm
from k3.logic.terms import Term


def no_mutants() -> Mapping[str, Term]:
    """A theorem without wrong variants."""
    return {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Theorem:
    """`statement` is a closed term; its docstring says it in words.

    `mutants` are wrong variants that must be refuted with concrete inputs; `hints`
    fixes inputs by name where random ones would seldom satisfy the premises.
    """

    statement: Callable[[], Term]
    proof: Callable[[], Thm]
    scope: str
    mutants: Callable[[], Mapping[str, Term]] = no_mutants
    hints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


Theorems = Mapping[str, Theorem]
