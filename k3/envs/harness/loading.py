"""Harnesses from JSON, TOML or mappings; the ones that are here by name."""

import dataclasses
import json
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from k3.envs.harness.harness import Harness
from k3.errors import ConfigError

PRESETS = ("assistant", "bash", "coding", "fenced", "react")


def preset(name: str) -> Harness:
    """A harness that is here, by its name.

    Raises: ConfigError.
    """
    if name not in PRESETS:
        raise ConfigError(
            f"a harness is one of {', '.join(PRESETS)}: got {name!r}; choose one, or "
            "load a file"
        )
    folder = resources.files("k3.envs.harness") / "presets"
    return of(tomllib.loads((folder / f"{name}.toml").read_text()))


def load(path: Path) -> Harness:
    """The harness of a .toml or .json file.

    Raises: ConfigError.
    """
    read = {".toml": tomllib.loads, ".json": json.loads}.get(path.suffix)
    if read is None:
        raise ConfigError(
            f"a harness is a .toml or .json file: got {path.name}; rename it"
        )
    try:
        found = read(path.read_text())
    except (OSError, ValueError) as fault:
        raise ConfigError(
            f"a harness must be a file that can be read: got {path} ({fault}); mend it"
        ) from fault
    return of(found)


def of(data: Any) -> Harness:
    """The harness of a mapping.

    Raises: ConfigError for a key that is unknown, missing, or of another type.
    """
    made = _value(Harness, data, "harness")
    assert isinstance(made, Harness)
    return made


def _value(kind: Any, data: Any, path: str) -> Any:
    """Data as what an annotation says: a record, a list of these, a text, a number."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _record(typing.cast(type, kind), data, path)
    if origin is types.UnionType and type(None) in inside:
        return None if data is None else _value(inside[0], data, path)
    if origin is types.UnionType:
        return _plain(inside, data, path)
    if origin is tuple:
        if not isinstance(data, Sequence) or isinstance(data, str):
            raise _other(path, "a list", data)
        parts = enumerate(data)
        return tuple(_value(inside[0], part, f"{path}[{at}]") for at, part in parts)
    if origin is Mapping:
        _mapping(data, path)
        items = data.items()
        return {key: _value(inside[1], part, f"{path}.{key}") for key, part in items}
    return _plain((kind,), data, path)


def _record(kind: type, data: Any, path: str) -> Any:
    _mapping(data, path)
    fields = {f.name: f for f in dataclasses.fields(kind)}
    unknown = [str(key) for key in data if key not in fields]
    if unknown:
        raise ConfigError(
            f"{path} has {', '.join(fields)}: got {', '.join(unknown)}; remove it"
        )
    needed = [name for name, f in fields.items() if _is_needed(f) and name not in data]
    if needed:
        raise ConfigError(f"{path} must say {', '.join(needed)}: add it")
    return kind(
        **{
            key: _value(fields[key].type, part, f"{path}.{key}")
            for key, part in data.items()
        }
    )


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    nothing = dataclasses.MISSING
    return field.default is nothing and field.default_factory is nothing


def _plain(kinds: tuple[type, ...], data: Any, path: str) -> Any:
    if type(data) not in kinds:
        raise _other(path, " or ".join(kind.__name__ for kind in kinds), data)
    return data


def _mapping(data: Any, path: str) -> None:
    if not isinstance(data, Mapping):
        raise _other(path, "a table", data)


def _other(path: str, wanted: str, data: Any) -> ConfigError:
    return ConfigError(f"{path} must be {wanted}: got {data!r}; mend it")
