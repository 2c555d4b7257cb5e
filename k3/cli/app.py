"""The `k3` program: its verbs, and how an error or an interruption ends it.

Exit codes: 0 ok, 1 a check failed, 2 usage, 130 interrupted. Nothing here imports
torch; a verb imports what it needs when it runs.
"""

import os
import signal
import sys
import warnings
from typing import Any, NoReturn

import typer
from typer.exceptions import TyperException
from typer.main import get_command

import k3
from k3.cli import chat, compare, convert, env, generate, graph, inspect, prove, train
from k3.errors import K3Error

USAGE = 2
INTERRUPTED = 130

app = typer.Typer(
    name="k3",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("generate")(generate.generate)
app.command("chat")(chat.chat)
app.command("inspect")(inspect.inspect)
app.command("compare")(compare.compare)
app.command("convert")(convert.convert)
app.command("train")(train.train)
app.command("prove")(prove.prove)
app.command("graph")(graph.graph)
app.command("env")(env.env)


@app.callback()
def k3_program(
    version: bool = typer.Option(False, "--version", help="Print the version."),
) -> None:
    """Kimi K3 in Python: read it, check it, run it, train it.

    \b
    k3 generate -p "The assert statement"    continue a text with the shipped model
    k3 inspect tiny                          is this checkpoint what K3 says?
    k3 chat                                  type lines, get continuations
    """


def main(arguments: list[str] | None = None) -> int:
    """Run the program; returns the exit code and prints no traceback for a K3Error."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"k3 {k3.__version__}")
        return 0
    before = signal.signal(signal.SIGTERM, _interrupt)
    warnings.showwarning = _show_warning
    try:
        return _run(arguments)
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(arguments: list[str]) -> int:
    try:
        code = get_command(app).main(arguments, prog_name="k3", standalone_mode=False)
        sys.stdout.flush()
    except TyperException as error:
        path = getattr(getattr(error, "ctx", None), "command_path", "k3")
        return _refuse(f"{error.format_message()} {path} --help lists what there is.")
    except K3Error as error:
        return _refuse(str(error))
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has left: nobody is there to be told.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if code == INTERRUPTED:
        print("\nk3: interrupted", file=sys.stderr)
    return code or 0


def _refuse(sentence: str) -> int:
    print(f"k3: {sentence}", file=sys.stderr)
    return USAGE


def _interrupt(*_: Any) -> NoReturn:
    raise KeyboardInterrupt


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"k3: note: {message}", file=sys.stderr)
