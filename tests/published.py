"""The published configuration with fields changed, and what is said about it."""

import copy
import functools

import pytest

from k3 import recipes
from k3.config import K3Config
from k3.errors import ConfigError


def changed(changes: dict) -> dict:
    """Return the published config with fields at dotted names changed."""
    data = copy.deepcopy(published())
    for name, value in changes.items():
        *path, last = name.split(".")
        inner = functools.reduce(lambda d, key: d[key], path, data)
        if value is DELETED:
            del inner[last]
        else:
            inner[last] = value
    return data


@functools.cache
def published() -> dict:
    return recipes.released().to_dict()


DELETED = object()


def complaint(changes: dict) -> str:
    with pytest.raises(ConfigError) as caught:
        K3Config.from_dict(changed(changes))
    return str(caught.value)
