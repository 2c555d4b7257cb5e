"""Verdicts of `k3.verify`, kept in verdicts.json by `tools/reader/verdicts.py`.

A verdict is fresh while the code that it judged is the code of the package: the digest
is of the syntax without docstrings, so words may change.
"""

import ast
import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any

from k3.errors import ConfigError
from k3.reader import source

REBUILD = "python tools/reader/verdicts.py"
_JUDGED = ("k3.kernels", "k3.spec", "k3.model", "k3.serve")


@cache
def verdicts() -> dict[str, dict[str, Any]]:
    """Every verdict by name."""
    file = resources.files("k3.reader") / "verdicts.json"
    return dict(json.loads(file.read_text(encoding="utf-8")))


def verdict(name: str) -> dict[str, Any]:
    """The verdict of a name. Raises: ConfigError for one that does not exist."""
    if name not in verdicts():
        raise ConfigError(
            f"exact must be a name of k3/reader/verdicts.json: got {name!r}; it has "
            f"{', '.join(verdicts())}"
        )
    return verdicts()[name]


def fresh(name: str) -> bool:
    """Whether the code is still what the verdict judged."""
    found = verdict(name)
    return bool(found["digest"] == digest(found["module"]))


@cache
def digest(module: str) -> str:
    """Of what a module of k3.verify judges: its imports from both columns."""
    total = hashlib.sha256()
    for name in sorted(set(_imports(module))):
        path = source.file_of(name)
        if path is None:
            return ""
        total.update(name.encode() + _bare(ast.parse(path.read_text("utf-8"))).encode())
    return total.hexdigest()


def _imports(module: str) -> list[str]:
    path = source.file_of(module)
    if path is None:
        return []
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
            found += [n for n in names if n.startswith(_JUDGED) and source.file_of(n)]
    return [n for n in found if n not in _JUDGED]


def _bare(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            node.body = body[1:]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
