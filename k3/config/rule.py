"""A rule about one field, and the few kinds of rule there are."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from k3.config.section import NOTHING, Section, Unreadable, View, Wrong, show

MAX_SIZE = 2**31


@dataclass(frozen=True, slots=True)
class Rule:
    """A field (dotted below its section), what is expected of it, and the test."""

    name: str
    expected: str | Callable[[Any], str]
    holds: Callable[[Any], bool]

    def wrong(self, section: Any, path: str) -> Wrong | None:
        """Return the field as wrong, or None if the rule holds or cannot be tried."""
        try:
            if self.holds(section):
                return None
            came = show(value_at(section, self.name))
            says = self.expected
            text = says if isinstance(says, str) else says(section)
        except Unreadable:
            return None
        return Wrong(path + self.name, came, text)


def tried(rules: Iterable[Rule], section: Any, path: str) -> list[Wrong]:
    """Return what every rule says of a section; None stands for no section."""
    if section is None:
        return []
    return [w for rule in rules if (w := rule.wrong(section, path))]


def value_at(section: Any, dotted: str) -> Any:
    """Return a field by its dotted name, NOTHING where a JSON object ends before."""
    for name in dotted.split("."):
        if isinstance(section, Mapping):
            section = section.get(name, NOTHING)
        elif isinstance(section, Section | View):
            section = getattr(section, name)
        else:
            return NOTHING
    return section


def positive(names: str) -> list[Rule]:
    """Rules that each named number is above zero, and a size that a tensor can have."""
    expected = "a positive number below 2^31"
    return [Rule(n, expected, partial(_is_positive, n)) for n in names.split()]


def equal(wanted: Mapping[str, Any]) -> list[Rule]:
    """Rules that each named field has one value, of the same type."""
    return [Rule(n, show(v), partial(_is, n, v)) for n, v in wanted.items()]


def ids(names: str) -> list[Rule]:
    """Rules that each named token id, where given, is in the vocabulary."""
    expected = "a token id below vocab_size"
    return [Rule(name, expected, partial(_is_id, name)) for name in names.split()]


def divides(name: str, whole: str, why: str) -> Rule:
    """The rule that one field divides another."""
    expected = f"a positive divisor of {whole}: {why}"
    return Rule(name, expected, partial(_divides, name, whole))


def _is_positive(name: str, section: Any) -> bool:
    return bool(0 < value_at(section, name) < MAX_SIZE)


def _is(name: str, wanted: Any, section: Any) -> bool:
    came = value_at(section, name)
    return type(came) is type(wanted) and came == wanted


def _is_id(name: str, section: Any) -> bool:
    value = value_at(section, name)
    text = section if hasattr(section, "vocab_size") else section.text_config
    return value is None or bool(0 <= value < text.vocab_size)


def _divides(name: str, whole: str, section: Any) -> bool:
    part = value_at(section, name)
    return bool(part > 0 and value_at(section, whole) % part == 0)
