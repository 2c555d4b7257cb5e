"""Definitions by `module:qualname`, read from the source; nothing is imported."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import k3
from k3.errors import ConfigError

ROOT = Path(k3.__file__).parent.parent
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A definition as it stands in its file."""

    name: str
    file: str
    line: int
    text: str
    docstring: str

    @property
    def place(self) -> str:
        """Such as k3/spec/kda.py:17."""
        return f"{self.file}:{self.line}"


@cache
def find(name: str) -> Source:
    """The definition of `k3.spec.kda:update`. Raises: ConfigError."""
    module, _, qualname = name.partition(":")
    path = file_of(module)
    if path is None or not qualname or not module.startswith("k3."):
        raise ConfigError(
            f"code must be module:qualname of this package: got {name!r}; there is no "
            "such module"
        )
    text = path.read_text(encoding="utf-8")
    node = _node(ast.parse(text).body, qualname.split("."))
    if node is None:
        raise ConfigError(
            f"code must be module:qualname: {module} defines no {qualname!r}; see "
            f"{path.relative_to(ROOT)}"
        )
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    lines = text.splitlines()[first - 1 : node.end_lineno]
    return Source(
        name=name,
        file=str(path.relative_to(ROOT)),
        line=first,
        text="\n".join(lines),
        docstring=_docstring(node),
    )


@cache
def public(module: str) -> tuple[str, ...]:
    """Names of the functions and classes that a module defines, without underscore."""
    path = file_of(module)
    assert path is not None, module
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return tuple(
        node.name
        for node in body
        if isinstance(node, _DEFINITIONS) and not node.name.startswith("_")
    )


def file_of(module: str) -> Path | None:
    """The file of a module or package, or None."""
    base = ROOT.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def _docstring(node: ast.stmt) -> str:
    if not isinstance(node, _DEFINITIONS):
        return ""
    return ast.get_docstring(node) or ""


def _node(body: list[ast.stmt], names: list[str]) -> ast.stmt | None:
    for node in body:
        if isinstance(node, _DEFINITIONS) and node.name == names[0]:
            return node if len(names) == 1 else _node(node.body, names[1:])
        if len(names) == 1 and names[0] in _assigned(node):
            return node
    return None


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]
