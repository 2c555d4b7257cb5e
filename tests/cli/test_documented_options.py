"""Report 101: what docs/verify.md names does something, and a test shows what."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TEXT = (HERE.parents[1] / "docs/verify.md").read_text()

SHOWN = {
    "--as": ("test_compare_function.py", "test_another_signature"),
    "--dtype": ("test_verify.py", "test_a_dtype_has_its_own_bound"),
    "--exact": ("test_compare_function.py", "test_exact"),
    "--json": ("test_verify.py", "test_json_and_the_options"),
    "--seed": ("test_verify.py", "test_json_and_the_options"),
    "--seeds": ("test_verify.py", "test_seeds_of_exact_arithmetic"),
    "--tokens": ("test_verify.py", "test_json_and_the_options"),
    "--tolerance": ("test_compare_function.py", "test_dtype_seed_and_tolerance"),
}


def test_report_101_every_documented_option_has_a_test_of_its_effect():
    documented = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", TEXT))
    assert documented == set(SHOWN)
    for option, (file, name) in SHOWN.items():
        source = (HERE / file).read_text()
        body = source.split(f"\ndef {name}(", 1)[1].split("\ndef ", 1)[0]
        assert f'"{option}"' in body, (option, name)


@pytest.mark.parametrize("verb", ["verify", "vectors", "compare"])
def test_report_101_an_undocumented_option_is_refused(k3, verb):
    found = k3(verb, "--certificate")
    assert found.code == 2
    assert "--certificate" in found.err
