"""Rules of the spec itself: what it imports, and that every function is read."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "k3" / "spec").glob("*.py"))
ALLOWED = {
    "collections",
    "dataclasses",
    "fractions",
    "functools",
    "itertools",
    "typing",
}
ALLOWED |= {"bisect", "json", "k3"}


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_only_operators_and_ops(file):
    for name in imported(ast.parse(file.read_text())):
        assert name.split(".")[0] in ALLOWED, name
        assert not name.startswith("k3.") or name.startswith(("k3.spec", "k3.config"))


def public(file):
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_function_is_run_by_a_test(file):
    texts = [p.read_text() for p in sorted(Path(__file__).parent.glob("*.py"))]
    texts += [p.read_text() for p in sorted((ROOT / "tests/golden").glob("*.json"))]
    tests = "\n".join(texts)
    # What only other spec functions call is read through them.
    spec = "\n".join(p.read_text() for p in FILES)
    for name in public(file):
        used = f"{file.stem}.{name}"
        assert used in tests or len(re.findall(rf"\b{name}\b", spec)) > 1, used
