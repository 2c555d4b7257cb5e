"""Fields of a request body, each with its range; unknown ones are refused."""

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from k3.data.xtml import check
from k3.serve.openai.errors import ApiError, invalid

# Said by clients for a provider's own bookkeeping; they change no answer.
IGNORED = (
    *("user", "metadata", "store", "service_tier", "safety_identifier"),
    *("prompt_cache_key", "prompt_cache_retention", "priority", "verbosity"),
    *("request_id", "spaces_between_special_tokens", "add_special_tokens"),
)
# Not offered: only the value that asks for nothing is taken.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "length_penalty": (1,),
    "logit_bias": ({},),
    "use_beam_search": (False,),
    "include_stop_str_in_output": (False,),
    "min_tokens": (0,),
    "modalities": (["text"],),
    "skip_special_tokens": (True,),
    "suffix": ("",),
    "audio": (),
    "prediction": (),
    "functions": ([],),
    "function_call": (),
    "web_search_options": (),
}
_INSTEAD = {
    "functions": "use tools",
    "function_call": "use tool_choice",
    "suffix": "leave it out",
}


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a body. null counts as absent, as clients send it."""

    body: Mapping[str, Any]

    def refuse_unknown(self, known: Sequence[str]) -> None:
        """Every field is known, ignored on purpose, or says nothing.

        Raises: ApiError 400 with the field.
        """
        for name, value in self.body.items():
            if name in known or name in IGNORED or value is None:
                continue
            if name in NEUTRAL:
                _refuse_unless(name, value)
                continue
            near = difflib.get_close_matches(name, known, n=1)
            remedy = f"did you mean {near[0]}?" if near else "remove it"
            raise invalid(
                f"{name[:80]} is no field of this request: {remedy}", name[:80]
            )

    def get(self, name: str) -> Any:
        """The value as it came; None when absent."""
        return self.body.get(name)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise wrong(name, "true or false", value)
        return default if value is None else value

    def text(self, name: str) -> str | None:
        """A string, or None."""
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise wrong(name, "a string", value)
        return value

    def integer(
        self, name: str, default: int | None, least: int, most: int
    ) -> int | None:
        """A whole number in a range; 3.0 is one."""
        value = self.get(name)
        if value is None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not least <= value <= most:
            raise wrong(name, f"a whole number from {least} to {most}", value)
        return int(value)

    def number(
        self, name: str, default: float, rule: str, holds: Callable[[float], bool]
    ) -> float:
        """A number for which the rule holds."""
        value = self.get(name)
        if value is None:
            return default
        real = isinstance(value, int | float) and not isinstance(value, bool)
        if not real or abs(value) > 1e300 or not math.isfinite(value):
            raise wrong(name, rule, value)
        if not holds(float(value)):
            raise wrong(name, rule, value)
        return float(value)

    def mapping(self, name: str) -> Mapping[str, Any]:
        """An object; an empty one when absent."""
        value = self.get(name)
        if value is not None and not isinstance(value, Mapping):
            raise wrong(name, "an object", value)
        return value or {}

    def integers(self, name: str, most: int) -> tuple[int, ...]:
        """A list of whole numbers from 0 to `most`."""
        value = self.get(name)
        if value is None:
            return ()
        rule = f"a list of whole numbers from 0 to {most}"
        if not isinstance(value, list):
            raise wrong(name, rule, value)
        for each in value:
            if not isinstance(each, int) or isinstance(each, bool):
                raise wrong(name, rule, each)
            if not 0 <= each <= most:
                raise wrong(name, rule, each)
        return tuple(value)


def wrong(name: str, rule: str, value: Any) -> ApiError:
    """The refusal of a value."""
    return invalid(f"{name} must be {rule}: got {check.shown(value)}", name)


def refuse_keys(path: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    """An object inside a body holds no more than it may.

    Raises: ApiError 400.
    """
    for key, value in given.items():
        if key not in known and value is not None:
            raise invalid(
                f"{path}.{key[:80]} must be absent: {path} has {', '.join(known)}; "
                "remove it",
                f"{path}.{key[:80]}",
            )


def _refuse_unless(name: str, value: Any) -> None:
    allowed = NEUTRAL[name]
    same = [value == each and type(value) is not bool for each in allowed]
    if any(same) or (isinstance(value, bool) and value in allowed):
        return
    remedy = _INSTEAD.get(name, "leave it out")
    raise invalid(
        f"{name} is not offered here: got {check.shown(value)}; {remedy}", name
    )
