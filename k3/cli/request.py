"""The sampling options of a verb as one checked value."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from k3.cli import settings
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.model.generate import GenerateOptions


def generate_options(params: Mapping[str, Any]) -> "GenerateOptions":
    """What the verb's options and its `--set` ask for; `--set` wins."""
    from k3.model.generate import GenerateOptions

    fields = {
        field.name: field.default for field in dataclasses.fields(GenerateOptions)
    }
    values = {name: params[name] for name in fields if params.get(name) is not None}
    values |= {
        "stop": tuple(params.get("stop") or ()),
        "stop_ids": tuple(params.get("stop_id") or ()),
    }
    extra = settings.parse(params.get("settings") or [])
    settings.refuse_unknown(extra, fields)
    values |= {key: _fit(key, value, fields[key]) for key, value in extra.items()}
    return GenerateOptions(**values)


def _fit(key: str, value: Any, default: Any) -> Any:
    """A value of `--set` in the type of the option's default."""
    if isinstance(default, tuple):
        return tuple(value) if isinstance(value, list) else (value,)
    if isinstance(default, float) and type(value) is int:
        return float(value)
    if type(value) is not type(default):
        raise RequestError(
            f"--set {key} needs a value like {default!r}: got {value!r}; write "
            f"--set {key}={default}"
        )
    return value
