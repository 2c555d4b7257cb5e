"""Abilities whose mistakes are sentences: what a function raises, it says."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from k3.envs.harness.task import Ability
from k3.errors import K3Error

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
FLAG = {"type": "boolean"}


def able(
    words: str,
    act: Callable[..., str],
    properties: Mapping[str, Mapping[str, Any]] | None = None,
) -> Ability:
    """An ability that does what `act` does; of a K3Error it says the sentence."""

    @functools.wraps(act)
    def safely(**arguments: object) -> str:
        try:
            return act(**arguments)
        except K3Error as error:
            return f"Error: {error}"

    return Ability(words=words, properties=properties or {}, act=safely)
