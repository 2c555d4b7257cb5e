"""Every name in the documents exists: symbols, paths, verbs and their options.

    python tools/check_names.py

Reads README, CONTRIBUTING, CHANGELOG and docs/, and the `Matches:` lines of the
docstrings. Checked between backticks and in fenced blocks: `k3.package.name`,
`module:qualname`, paths, `k3 verb --option`, `make target`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import symbols

ROOT = Path(__file__).resolve().parent.parent
DOTTED = re.compile(r"k3(\.\w+)+")
QUALIFIED = re.compile(r"[\w./]+:[A-Za-z_][\w.]*")
PATH = re.compile(r"[\w.@-]+(/[\w.@-]+)*/?")
SUFFIXES = (".py", ".md", ".toml", ".txt", ".npz", ".json", ".sh", "/")
MATCHES = re.compile(r"Matches:\s+(?:k3\.)?((?:spec|graph|kernels|model)\.[\w.]*\w)")
# Written by the commands of the documents, or part of a checkpoint.
NOT_OURS = ("model.safetensors.index.json", "config.json", "tokenizer_config.json")


def documents() -> Iterator[Path]:
    """The prose whose names are checked."""
    yield from sorted(ROOT.glob("*.md"))
    yield from sorted((ROOT / "docs").rglob("*.md"))


def spans(text: str) -> Iterator[tuple[int, str]]:
    """(line, words) of each inline code span and each line of a fenced block."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            yield number, line.split("#")[0].strip().removeprefix("$ ")
        else:
            yield from ((number, span) for span in re.findall(r"`([^`]+)`", line))


def problem(span: str) -> str | None:
    """Why a span names something that does not exist, or None."""
    words = span.split()
    if not words:
        return None
    if words[0] in ("k3", ".venv/bin/k3") and len(words) > 1:
        return verb_problem(words[1:])
    if words[0] == "make" and len(words) == 2:
        return None if words[1] in make_targets() else "the Makefile has no such target"
    if len(words) > 1:
        return None
    return name_problem(span.split("(")[0])


def name_problem(name: str) -> str | None:
    """The same for one word: a symbol or a path."""
    if DOTTED.fullmatch(name):
        return None if symbols.exists(name) else "k3 has no such name"
    if QUALIFIED.fullmatch(name) and name.startswith(("k3", "tests", "tools")):
        module, _, qualname = name.partition(":")
        dotted = module.removesuffix(".py").replace("/", ".") + "." + qualname
        return None if symbols.exists(dotted) else "there is no such definition"
    if PATH.fullmatch(name) and name.endswith(SUFFIXES) and name not in NOT_OURS:
        if "/" not in name.rstrip("/") and name.endswith((".npz", ".json", "/")):
            return None
        return None if (ROOT / name).exists() else "there is no such file"
    return None


def verb_problem(words: list[str]) -> str | None:
    """Whether `k3 VERB --option` is one that the command line takes."""
    options = verbs()
    if words[0].startswith(("-", "<")):
        return None
    if words[0] not in options:
        return f"k3 has no verb {words[0]}; it has {' '.join(sorted(options))}"
    for word in words[1:]:
        flag = word.strip("[]").split("=")[0]
        if flag.startswith("--") and flag not in options[words[0]]:
            return f"k3 {words[0]} has no option {flag}"
    return None


def verbs() -> dict[str, set[str]]:
    """The options of every verb, asked of the program itself."""
    from typer.main import get_command

    from k3.cli.app import app

    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    return {
        name: {flag for p in command.params for flag in (*p.opts, *p.secondary_opts)}
        | {"--help"}
        for name, command in commands.items()
    }


def make_targets() -> set[str]:
    """The targets of the Makefile."""
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))


def docstring_problems() -> Iterator[str]:
    """`Matches:` lines that name nothing."""
    for path in sorted((ROOT / "k3").rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for name in MATCHES.findall(line):
                if not symbols.exists(f"k3.{name}"):
                    yield f"{path.relative_to(ROOT)}:{number}: Matches: {name}: no such"


def main() -> int:
    """Print every name that does not exist; 1 if there is one."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: `{span}`: {why}"
        for path in documents()
        for number, span in spans(path.read_text())
        if (why := problem(span))
    ]
    found += docstring_problems()
    print("\n".join(found) if found else "names: ok")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
