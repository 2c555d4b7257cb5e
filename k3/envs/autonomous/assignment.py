"""An assignment: what is asked for, what is open, and what is checked out of sight."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

PROGRAM = "solve.py"
DIAGNOSE = "diagnose.py"


@dataclass(frozen=True, slots=True)
class Case:
    """An input of the program, and whether what it printed is right."""

    given: str
    right: Callable[[str], bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """One instance. `files` are open to the agent, `hidden` never leaves the host."""

    name: str
    words: str
    files: Mapping[str, str]
    hidden: tuple[Case, ...]
    solution: str
