"""Environments by name."""

import pytest

from k3.envs import registry
from k3.errors import RequestError


def test_an_unknown_name_is_a_sentence():
    with pytest.raises(RequestError, match=r"an environment is one of .*got 'chess'"):
        registry.named("chess")


def test_no_name_is_given_twice():
    assert len(set(registry.names())) == len(registry.names())
