"""Definitions come from the files, whole, with their line."""

import inspect

import pytest

from k3.errors import ConfigError
from k3.reader import source
from k3.spec import kda


def test_the_text_is_what_python_sees():
    found = source.find("k3.spec.kda:update")
    lines, line = inspect.getsourcelines(kda.update)
    assert found.text == "".join(lines).rstrip()
    assert found.place == f"k3/spec/kda.py:{line}"
    assert found.docstring.startswith("Eq. 1 (§2.1.1)")


def test_methods_constants_and_decorators():
    assert (
        "def sequence_bytes"
        in source.find("k3.config.sizes:Memory.sequence_bytes").text
    )
    assert source.find("k3.config.sizes:Memory").text.startswith("@dataclass")
    assert source.find("k3.spec.kda:FLOOR").text == "FLOOR = -5"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("k3.spec.kda:updates", "k3.spec.kda defines no 'updates'"),
        ("k3.spec.none:f", "there is no such module"),
        ("os:path", "of this package"),
        ("k3.spec.kda", "module:qualname"),
    ],
)
def test_what_does_not_exist_is_refused(name, words):
    with pytest.raises(ConfigError, match=words):
        source.find(name)


def test_public_names():
    names = source.public("k3.spec.situ")
    assert "soft_cap" in names
    assert not any(name.startswith("_") for name in names)
