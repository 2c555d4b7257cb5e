"""The sampling options of a verb, checked before torch is imported."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from k3.cli import loading, settings
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.model.generate import GenerateOptions

# The fields of GenerateOptions with their defaults: what --set takes.
DEFAULTS: dict[str, Any] = {
    "max_tokens": 128,
    "temperature": 1.0,
    "top_p": 0.95,
    "top_k": 0,
    "min_p": 0.0,
    "seed": 0,
    "stop": (),
    "stop_ids": (),
    "ignore_eos": False,
    "logprobs": 0,
}
# Where a field is not called as the parameter of the verb is.
PARAMETERS = {"stop_ids": "stop_id"}
# What the entries of a field are, in words, and how to write them.
ENTRIES: dict[str, tuple[type, str, str]] = {
    "stop": (str, "texts", '["."]'),
    "stop_ids": (int, "whole numbers", "[258]"),
}
Rule = Callable[[Any], bool]
_COUNT: tuple[str, Rule] = ("at least 0", lambda value: value >= 0)
SEED: tuple[str, Rule] = ("from 0 to 2^63 - 1", lambda value: 0 <= value < 2**63)
# GenerateOptions holds these rules too; here they cost no import.
RULES: list[tuple[str, str, Rule]] = [
    ("max_tokens", *_COUNT),
    ("temperature", "at least 0 and finite", lambda value: 0 <= value < math.inf),
    ("top_p", "above 0 and at most 1", lambda value: 0 < value <= 1),
    ("top_k", *_COUNT),
    ("min_p", "at least 0 and at most 1", lambda value: 0 <= value <= 1),
    ("seed", *SEED),
    ("stop", "texts of at least one character", lambda value: "" not in value),
    ("logprobs", *_COUNT),
]


def values(context: typer.Context, params: Mapping[str, Any]) -> dict[str, Any]:
    """What the verb's options and its `--set` ask for, each given once."""
    loading.check(params["dtype"], params["device"], params["experts"])
    given = {key: params.get(PARAMETERS.get(key, key)) for key in DEFAULTS}
    found = {key: value for key, value in given.items() if value is not None}
    found |= {key: tuple(found.get(key, ())) for key in ("stop", "stop_ids")}
    extra = settings.parse(params.get("settings") or [])
    settings.refuse_unknown(extra, DEFAULTS)
    _refuse_double(context, extra)
    found |= {key: _fit(key, value, DEFAULTS[key]) for key, value in extra.items()}
    wrong = [
        f"{key} must be {rule}: got {found[key]!r:.80}"
        for key, rule, holds in RULES
        if key in found and not holds(found[key])
    ]
    if wrong:
        raise RequestError("; ".join(wrong))
    return found


def options(found: Mapping[str, Any]) -> "GenerateOptions":
    """The checked values as generation takes them."""
    from k3.model.generate import GenerateOptions

    return GenerateOptions(**found)


def _refuse_double(context: typer.Context, keys: Iterable[str]) -> None:
    """A key of `--set` whose own flag was typed too has no one meaning."""
    for key in keys:
        name = PARAMETERS.get(key, key)
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            flag = "--" + name.replace("_", "-")
            raise RequestError(
                f"a value is given once: got --set {key} and {flag}; drop one of them"
            )


def _fit(key: str, value: Any, default: Any) -> Any:
    """A value of `--set` in the type of the option's default."""
    if isinstance(default, tuple):
        return _entries(key, value)
    # Beyond 2^1023 no float holds it; the rules refuse it as it is.
    if isinstance(default, float) and type(value) is int:
        return (
            float(value)
            if abs(value) < 2**1023
            else math.inf * (1 if value > 0 else -1)
        )
    if type(value) is not type(default):
        raise RequestError(
            f"--set {key} needs a value like {default!r}: got {value!r:.80}; write "
            f"--set {key}={default}"
        )
    return value


def _entries(key: str, value: Any) -> tuple[Any, ...]:
    """One entry or a list of them, each of the key's kind."""
    kind, words, example = ENTRIES[key]
    found = tuple(value) if isinstance(value, list) else (value,)
    for entry in found:
        if type(entry) is not kind:
            raise RequestError(
                f"--set {key} needs {words}: got {entry!r:.80}; write --set '{key}="
                f"{example}'"
            )
    return found
