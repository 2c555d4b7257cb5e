"""The settings of a run: rules about single fields, and values that are set by name.

A dataclass keeps its rules beside it and checks them when it is made. Rules of the
released config.json, which are about whole sections, are those of k3.config.rule.
"""

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

from k3.errors import RequestError

Test = tuple[str, Callable[[Any], bool]]
"""What follows "must be" in a message, and whether a value is that."""

Rule = tuple[str, str, Callable[[Any], bool]]
"""The name of a field, then its test."""


def at_least(least: float) -> Test:
    """The test of a number that a least one bounds."""
    return f"at least {least}", lambda value: value >= least


POSITIVE, COUNT = at_least(1), at_least(0)
FRACTION: Test = ("from 0 to 1", lambda value: 0 <= value <= 1)
SHARE: Test = ("above 0 and at most 1", lambda value: 0 < value <= 1)
BELOW_ONE: Test = ("from 0 to below 1", lambda value: 0 <= value < 1)
ABOVE_ZERO: Test = ("above 0 and finite", lambda value: 0 < value < math.inf)
NOT_NEGATIVE: Test = ("at least 0 and finite", lambda value: 0 <= value < math.inf)


class Fields(Protocol):
    """A dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class Named(Fields, Protocol):
    """A dataclass of settings that has a name."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...


T = TypeVar("T", bound=Named)


def wrong(
    held: Fields, rules: Iterable[Rule], show: Callable[[Any], str] = str
) -> list[str]:
    """A sentence for each rule that its field breaks, in the order of the rules."""
    return [
        f"{name} must be {words}: got {show(getattr(held, name))}"
        for name, words, holds in rules
        if not holds(getattr(held, name))
    ]


def check(held: Fields, rules: Iterable[Rule]) -> None:
    """Refuse settings that break a rule. Raises: RequestError, with every one."""
    if found := wrong(held, rules):
        raise RequestError("; ".join(found))


def names(kind: type[Fields], *, but: Collection[str]) -> tuple[str, ...]:
    """The fields that can be set: all but these."""
    return tuple(f.name for f in dataclasses.fields(kind) if f.name not in but)


def values(held: Fields) -> dict[str, Any]:
    """Every field by its name, none of them converted or copied."""
    return {f.name: getattr(held, f.name) for f in dataclasses.fields(held)}


def changed(
    held: T,
    given: Mapping[str, Any],
    known: Collection[str],
    readers: Mapping[str, Callable[[str], Any]],
) -> T:
    """The settings with values replaced by name, as text or as they are.

    A value is read as the type of the one that it replaces; `readers` read the fields
    that are more than a number, a word or a truth.
    Raises: RequestError for a name that is not known, or a value of another type.
    """
    new = {}
    for key, value in given.items():
        if key not in known:
            raise RequestError(
                f"no setting {key!r} in recipe {held.name}: choose one of "
                f"{', '.join(known)}"
            )
        kind = type(getattr(held, key))
        try:
            new[key] = readers.get(key, _truth if kind is bool else kind)(str(value))
        except ValueError:
            raise RequestError(
                f"setting {key} must be of type {kind.__name__}: got {value!r}"
            ) from None
    return dataclasses.replace(held, **new)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"
