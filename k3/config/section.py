"""One level of config.json: which keys came, which are unknown, and how to write back.

A section is a frozen dataclass whose fields are the keys of its level. It remembers
the keys that were in the file, so that what was absent stays absent when written.
"""

import copy
import dataclasses
import json
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

# JSON writes -5 or -5.0; the value that came is the value that is written back.
Real = int | float
_OWN = ("keys", "extra", "unused")
_SHOWN = 12


class _Nothing:
    """What a file has under a key that did not come."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()


class Unreadable(AttributeError):
    """A field that is absent or of the wrong type; rules about it are skipped."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """One wrong field: its name, what came, what was expected."""

    name: str
    came: str
    expected: str

    def line(self) -> str:
        """Return the field as one line of the error message."""
        return f"{self.name}: got {self.came}, expected {self.expected}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """What every level has beside its own keys."""

    BOOKKEEPING: ClassVar[frozenset[str]] = frozenset()

    keys: tuple[str, ...] = field(default=(), compare=False, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    unused: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the level as JSON values, with the keys that came, in their order."""
        values = {n: write(getattr(self, n)) for n in names(type(self))}
        known = {**values, **_plain(self.unused), **_plain(self.extra)}
        changed = [n for n in values if not _is_default(self, n)]
        order = dict.fromkeys((*self.keys, *changed, *self.unused, *self.extra))
        return {name: known[name] for name in order if name in known}


class View:
    """A section of which some fields could not be read; those raise Unreadable."""

    def __init__(self, kind: type[Section], values: dict[str, Any]) -> None:
        self._kind, self._values = kind, values

    def __getattr__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        derived = getattr(self._kind, name, None)
        if isinstance(derived, property) and derived.fget:
            return derived.fget(self)
        raise Unreadable(name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        ours, theirs = self._values | {"keys": ()}, other._values | {"keys": ()}
        return self._kind is other._kind and ours == theirs

    def build(self) -> Any:
        """Return the section; only called when nothing was wrong."""
        values = self._values.items()
        built = {n: v.build() if isinstance(v, View) else v for n, v in values}
        return self._kind(**built)


def names(kind: type[Section]) -> list[str]:
    """Return the keys that a level knows, in the order of its fields."""
    return [f.name for f in dataclasses.fields(kind) if f.name not in _OWN]


def parse(
    kind: type[Section], data: Mapping[str, Any], path: str, wrong: list[Wrong]
) -> View:
    """Return a view of `data` as `kind`, adding to `wrong` what cannot be read."""
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {"keys": tuple(data)}
    for spec in dataclasses.fields(kind):
        if spec.name in _OWN:
            continue
        if spec.name in data:
            _convert(
                values, spec.name, data[spec.name], (hints[spec.name], path, wrong)
            )
        elif spec.default is not dataclasses.MISSING:
            values[spec.name] = spec.default
        else:
            expected = _describe(hints[spec.name])
            wrong.append(Wrong(path + spec.name, show(NOTHING), expected))
    known = set(names(kind))
    rest = {k: copy.deepcopy(v) for k, v in data.items() if k not in known}
    values["unused"] = {k: v for k, v in rest.items() if k in kind.BOOKKEEPING}
    values["extra"] = {k: v for k, v in rest.items() if k not in kind.BOOKKEEPING}
    return View(kind, values)


def _convert(
    values: dict[str, Any], name: str, value: Any, how: tuple[Any, str, list[Wrong]]
) -> None:
    hint, path, wrong = how
    section = _section_of(hint)
    if section and isinstance(value, Mapping):
        values[name] = parse(section, value, f"{path}{name}.", wrong)
    elif _accepts(hint, value):
        values[name] = tuple(value) if isinstance(value, list) else copy.deepcopy(value)
    else:
        wrong.append(Wrong(path + name, show(value), _describe(hint)))


def _options(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def _section_of(hint: Any) -> type[Section] | None:
    for option in _options(hint):
        if isinstance(option, type) and issubclass(option, Section):
            return option
    return None


def _accepts(hint: Any, value: Any) -> bool:
    return any(_accepts_one(option, value) for option in _options(hint))


def _accepts_one(option: Any, value: Any) -> bool:
    if option is type(None):
        return value is None
    if typing.get_origin(option) is tuple:
        inner = typing.get_args(option)[0]
        return isinstance(value, list) and all(_accepts(inner, v) for v in value)
    if typing.get_origin(option) is Mapping:
        return isinstance(value, Mapping)
    if option is float:
        return isinstance(value, float) and math.isfinite(value)
    # bool is an int to Python, and never one here.
    return type(value) is option


_WORDS = {
    int: "an integer",
    float: "a finite number",
    bool: "true or false",
    str: "a string",
    type(None): "null",
}


def _describe(hint: Any) -> str:
    options = [o for o in _options(hint) if not (o is int and float in _options(hint))]
    return " or ".join(_describe_one(option) for option in options)


def _describe_one(option: Any) -> str:
    if typing.get_origin(option) is tuple:
        inner = typing.get_args(option)[0]
        return f"a list, each entry {_describe(inner)}"
    return _WORDS.get(option, "an object")


def write(value: Any) -> Any:
    """Return a field as a JSON value."""
    if isinstance(value, Section):
        return value.to_dict()
    if isinstance(value, tuple):
        return [write(v) for v in value]
    return copy.deepcopy(value)


def show(value: Any) -> str:
    """Return a value for a message, the middle of a long list left out."""
    if isinstance(value, Section | View):
        return "an object with other values"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if not isinstance(value, list | tuple) or len(value) <= _SHOWN:
        return repr(list(value) if isinstance(value, tuple) else value)
    head = ", ".join(map(repr, value[:4]))
    tail = ", ".join(map(repr, value[-2:]))
    return f"[{head}, ... {tail}] ({len(value)} entries)"


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: copy.deepcopy(v) for k, v in values.items()}


def _is_default(section: Section, name: str) -> bool:
    default = type(section).__dataclass_fields__[name].default
    return default is not dataclasses.MISSING and getattr(section, name) == default


def unknown(section: Section, path: str = "") -> list[str]:
    """Return the full names of the unknown fields of a section and those below."""
    found = [path + name for name in section.extra]
    for name in names(type(section)):
        value = getattr(section, name)
        if isinstance(value, Section):
            found += unknown(value, f"{path}{name}.")
    return found
