"""The repository keeps its promises: exports, layers, and every documented command."""

import ast
import importlib
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = sorted(
    ".".join(path.parent.relative_to(ROOT).parts)
    for path in (ROOT / "k3").rglob("__init__.py")
)
PUBLIC = {
    "k3": ["__version__", "load", "tokenizer"],
    "k3.bench": ["Comparison", "Figure", "Report", "Setting", "compare", "run"],
    "k3.cli": ["main"],
    "k3.config": [
        "K3Config",
        "LinearAttnConfig",
        "QuantizationConfig",
        "TextConfig",
        "VisionConfig",
    ],
    "k3.checkpoint": [],
    "k3.data": ["Tokenizer"],
    "k3.data.corpora": ["Corpus", "Document", "is_heldout", "join", "stdlib"],
    "k3.data.xtml": [
        "PROBLEMS",
        "CallArguments",
        "CallEnd",
        "CallStart",
        "Content",
        "End",
        "Event",
        "Message",
        "Parser",
        "Piece",
        "Pieces",
        "Problem",
        "Prompt",
        "Reasoning",
        "RenderOptions",
        "Segment",
        "ToolCall",
        "assemble",
        "escape",
        "parse",
        "render",
        "unescape",
    ],
    "k3.envs.harness": [
        "PRESETS",
        "Ability",
        "Asked",
        "Content",
        "Context",
        "Harness",
        "Harnessed",
        "Memory",
        "Steps",
        "Task",
        "Tool",
        "Words",
        "agent",
        "load",
        "of",
        "preset",
        "solver",
    ],
    "k3.envs.assistant": ["Office", "make"],
    "k3.envs.autonomous": ["Autonomous", "make"],
    "k3.envs.kernels": ["Bench", "KernelTask", "Verdict", "make", "marks"],
    "k3.envs.web": ["Browser", "WebPage", "make"],
    "k3.graph": [
        "Block",
        "Term",
        "catalogue",
        "evaluate",
        "get",
        "load",
        "run",
        "show",
    ],
    "k3.hf": [
        "KimiK3Config",
        "KimiK3ForConditionalGeneration",
        "KimiK3Tokenizer",
        "StateCache",
        "extra",
        "register",
    ],
    "k3.kernels": [],
    "k3.kernels.native": [],
    "k3.logic": [],
    "k3.model": ["DecodeState", "Model"],
    "k3.parallel": ["Mesh"],
    "k3.proof": ["Record", "Theorem", "article", "prove", "prove_all", "theorems"],
    "k3.reader": [],
    "k3.serve": [
        "CacheOptions",
        "Engine",
        "EngineOptions",
        "Image",
        "Output",
        "PrefixCache",
        "Request",
        "Worker",
        "prefill",
    ],
    "k3.serve.openai": ["ServerOptions", "app"],
    "k3.spec": [],
    "k3.train": ["Recipe"],
    "k3.verify": ["Entry", "Report", "compare"],
    "k3.verify.adapters": ["adapted"],
    "k3.verify.operators": ["OPERATORS", "Operator", "find"],
    "k3.verify.refine": ["CLAIMS", "Check", "Outcome", "Setting", "run"],
    "k3.verify.vectors": ["export_model", "export_operator"],
    "k3.verify.enclose": [
        "Ball",
        "Flip",
        "ModuleReport",
        "Report",
        "lines",
        "module",
        "run",
    ],
    "k3.verify.exact": ["Difference", "Place", "Report", "equal", "gradient"],
}
LEFT = {"spec", "graph", "logic", "proof"}
# Prefixes of commands that take minutes or are this run: their form is checked alone.
LONG = ("make", "k3 train tiny", "k3 prove --all", "k3 bench")
# Verbs that answer until somebody ends them.
SERVING = ("k3 chat", "k3 serve", "k3 read")
DOCUMENTS = ["README.md", "CONTRIBUTING.md"]
"""Documents whose commands a reader types as they stand."""


def commands():
    """(document, command) of fenced blocks without a language, and README's table."""
    for name in DOCUMENTS:
        text = (ROOT / name).read_text()
        for block in re.findall(r"```\n(.*?)```", text, re.S):
            for line in block.splitlines():
                if line.split("#")[0].strip():
                    yield name, line.split("#")[0].strip()
        yield from ((name, found) for found in re.findall(r"`(k3 [a-z]+ ?.*?)`", text))


def quick(command):
    return not command.startswith(LONG) and command not in SERVING


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_exports_what_it_says(package):
    module = importlib.import_module(package)
    names = getattr(module, "__all__", [])
    assert all(hasattr(module, name) for name in names)
    if package in PUBLIC:
        assert list(names) == PUBLIC[package]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_file_holds_nothing_but_its_exports(package):
    source = (ROOT / Path(*package.split(".")) / "__init__.py").read_text()
    docstring, *rest = ast.parse(source).body
    assert isinstance(docstring, ast.Expr)
    if package != "k3":
        allowed = ast.ImportFrom | ast.Assign | ast.AnnAssign
        assert all(isinstance(node, allowed) for node in rest)


def test_every_package_has_its_place_in_the_contracts():
    packages = {name.split(".")[1] for name in PACKAGES if "." in name}
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    forbidding = {c["name"]: c for c in contracts if c["type"] == "forbidden"}
    true = forbidding["What is true imports neither torch nor what runs"]
    runs = forbidding["What runs never imports what is true"]
    joints = {"cli", "verify", "reader", "config"}
    left = {f"k3.{name}" for name in packages & LEFT}
    right = {f"k3.{name}" for name in packages - LEFT - joints}
    assert set(true["source_modules"]) == left == set(runs["forbidden_modules"])
    assert set(runs["source_modules"]) == right
    assert right | {"torch"} == set(true["forbidden_modules"])


def test_import_of_k3_is_free_of_torch():
    code = "import k3, k3.errors, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_names_and_sizes_are_checked_by_tools_that_can_fail(tmp_path):
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        check_names = importlib.import_module("check_names")
        sizes = importlib.import_module("sizes")
    finally:
        sys.path.pop(0)
    assert check_names.problem("k3.kernels.kda.chunk") is None
    assert check_names.problem("k3.kernels.kda.chunks") == "k3 has no such name"
    assert check_names.problem("tests/golden/none.md") == "there is no such file"
    assert check_names.problem("k3 generate --seed 1") is None
    assert "no option --sead" in check_names.problem("k3 generate --sead 1")
    assert "no verb" in check_names.problem("k3 fly")
    assert check_names.problem("make tea") == "the Makefile has no such target"
    long = ast.parse("def f(a, b, c, d, e, f):\n" + "    x = 1\n" * 41).body[0]
    assert "42 lines" in next(sizes.too_long(long))
    assert "6 positional" in next(sizes.too_many(long))


@pytest.mark.parametrize("target", re.findall(r"make (\w+)", "make demo make test"))
def test_the_two_commands_of_the_readme_are_targets(target):
    subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.parametrize(
    "command", sorted({command for _, command in commands() if quick(command)})
)
def test_documented_commands_run(command, tmp_path, monkeypatch, capsys):
    from k3.cli import main

    words = shlex.split(command.replace("/tmp/", f"{tmp_path}/"))
    if "…" in command or len(words) < 2:
        pytest.skip("a form, not a command")
    assert words[0] == "k3", f"no test knows how to run {command!r}"
    monkeypatch.chdir(ROOT)
    # The model's speed is not what is tested here.
    short = ["--max-tokens", "3"] if words[1] == "generate" else []
    assert main([*words[1:], *short]) == 0


@pytest.mark.parametrize(
    "example", sorted(path.name for path in (ROOT / "examples").glob("*.py"))
)
def test_examples_run(example):
    script = [sys.executable, str(ROOT / "examples" / example)]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_readmes_program_is_the_example():
    (block,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S
    )
    assert (ROOT / "examples" / "generate.py").read_text().endswith(block)


def test_the_demo_prints_its_verdicts_without_a_terminal():
    demo = [sys.executable, str(ROOT / "tools" / "demo.py")]
    done = subprocess.run(demo, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" ok") >= 2
    assert "tok/s" in done.stdout
