"""Does a dotted Python name exist? Answered from the source, nothing is imported."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def exists(dotted: str) -> bool:
    """True for a module of this repository or a definition inside one."""
    parts = dotted.split(".")
    for split in range(len(parts), 0, -1):
        source = module_file(parts[:split])
        if source:
            return defines(source, parts[split:])
    return False


def module_file(parts: list[str]) -> Path | None:
    """The file of a module or package."""
    path = ROOT.joinpath(*parts)
    for source in (path.with_suffix(".py"), path / "__init__.py"):
        if source.is_file():
            return source
    return None


def defines(source: Path, qualname: list[str]) -> bool:
    """Whether a file defines the names, each inside the one before."""
    body: list[ast.stmt] = parsed(source).body
    for position, name in enumerate(qualname):
        node = next((node for node in body if name in bound(node)), None)
        if node is None:
            return position == 0 and len(qualname) == 1 and name in exported(body)
        body = node.body if isinstance(node, ast.ClassDef) else []
        if isinstance(node, ast.ImportFrom):
            return follow(node, name, qualname[position + 1 :])
    return True


def follow(node: ast.ImportFrom, name: str, rest: list[str]) -> bool:
    """The rest of a name behind `from module import name`."""
    original = next(a.name for a in node.names if name in (a.asname, a.name))
    module = (node.module or "").split(".")
    return not rest or exists(".".join([*module, original, *rest]))


@cache
def parsed(source: Path) -> ast.Module:
    """The syntax tree of a file, read once."""
    return ast.parse(source.read_text())


def bound(node: ast.stmt) -> set[str]:
    """The names that one statement binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    if isinstance(node, ast.AnnAssign):
        return {ast.unparse(node.target)}
    if isinstance(node, ast.Assign):
        return {name for target in node.targets for name in plain_names(target)}
    return set()


def plain_names(target: ast.expr) -> set[str]:
    """The variables of an assignment's left side."""
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def exported(body: list[ast.stmt]) -> set[str]:
    """The names in `__all__`: those that `__getattr__` supplies are there too."""
    for node in body:
        if isinstance(node, ast.Assign) and "__all__" in bound(node):
            return set(ast.literal_eval(node.value))
    return set()
