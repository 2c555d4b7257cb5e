"""Files of at most 300 lines, functions of at most 40, five positional parameters.

    python tools/sizes.py [--list]

Prints what is too long and exits 1; `--list` prints the lines of each package.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("k3", "tests", "tools", "benchmarks", "examples")
FILE_LINES = 300
FUNCTION_LINES = 40
TRITON_LINES = 100
POSITIONAL = 5
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def sources() -> Iterator[Path]:
    """Every Python file that is ours, in a stable order."""
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def excesses(path: Path) -> Iterator[str]:
    """One sentence for each limit that the file passes."""
    name = path.relative_to(ROOT)
    text = path.read_text()
    lines = len(text.splitlines())
    if lines > FILE_LINES:
        yield f"{name}: {lines} lines, at most {FILE_LINES}; split it by noun"
    for node in ast.walk(ast.parse(text, str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (f"{name}:{node.lineno}: {what}" for what in too_long(node))
            # What a test takes is its fixtures: pytest passes them by name.
            if name.parts[0] != "tests":
                yield from (f"{name}:{node.lineno}: {what}" for what in too_many(node))


def too_long(node: Function) -> Iterator[str]:
    """Whether a function has too many lines."""
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    limit = TRITON_LINES if is_triton(node) else FUNCTION_LINES
    if length > limit:
        yield f"{node.name} has {length} lines, at most {limit}"


def too_many(node: Function) -> Iterator[str]:
    """Whether a function takes too many parameters by position."""
    names = [arg.arg for arg in node.args.posonlyargs + node.args.args]
    count = len([name for name in names if name not in ("self", "cls")])
    # A Triton kernel has no keyword-only parameters.
    if count > POSITIONAL and not is_triton(node):
        yield (
            f"{node.name} has {count} positional parameters, at most {POSITIONAL}; "
            f"put * before the rest"
        )


def is_triton(node: Function) -> bool:
    """Whether a function is a kernel in Triton's language."""
    return any("triton" in ast.unparse(mark) for mark in node.decorator_list)


def by_package() -> Counter[str]:
    """Lines of Python in each folder below the root, two levels deep."""
    total: Counter[str] = Counter()
    for path in sources():
        folder = path.relative_to(ROOT).parent
        total["/".join(folder.parts[:2])] += len(path.read_text().splitlines())
    return total


def main() -> int:
    """Print every excess; 1 if there is one."""
    if "--list" in sys.argv[1:]:
        for folder, lines in sorted(by_package().items()):
            print(f"{lines:6} {folder}")
    found = [line for path in sources() for line in excesses(path)]
    print("\n".join(found) if found else "sizes: ok")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
