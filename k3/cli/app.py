"""The `k3` program: its verbs, and how an error or an interruption ends it.

Exit codes: 0 ok, 1 a check failed, 2 usage, 130 interrupted. Nothing here imports
torch; a verb imports what it needs when it runs.
"""

import signal
import sys
import warnings
from typing import Any, NoReturn

import typer
from typer.exceptions import TyperException
from typer.main import get_command

import k3
from k3.cli import (
    bench,
    chat,
    compare,
    convert,
    data,
    distill,
    draft,
    env,
    eval,
    generate,
    graph,
    inspect,
    output,
    plan,
    prove,
    read,
    rl,
    serve,
    sft,
    train,
    vectors,
    verify,
)
from k3.errors import K3Error

USAGE = 2
INTERRUPTED = 130
NUMBERS = {"int": "a whole number", "float": "a number"}

app = typer.Typer(
    name="k3",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("generate")(generate.generate)
app.command("chat")(chat.chat)
app.command("serve", cls=serve.ServeCommand)(serve.serve)
app.command("inspect")(inspect.inspect)
app.command("compare")(compare.compare)
app.command("verify")(verify.verify)
app.command("vectors")(vectors.vectors)
app.command("convert")(convert.convert)
app.command("data")(data.data)
app.command("train")(train.train)
app.command("sft")(sft.sft)
app.command("draft")(draft.draft)
app.command("rl")(rl.rl)
app.command("distill")(distill.distill)
app.command("plan")(plan.plan)
app.command("prove")(prove.prove)
app.command("graph")(graph.graph)
app.command("read")(read.read)
app.command("bench")(bench.bench)
app.command("eval")(eval.evaluate)
app.command("env")(env.env)


@app.callback()
def k3_program(
    version: bool = typer.Option(False, "--version", help="Print the version."),
) -> None:
    """Kimi K3 in Python: read it, check it, run it, train it.

    \b
    k3 generate -p "Return True if"          continue a text with the shipped model
    k3 inspect tiny                          is this checkpoint what K3 says?
    k3 chat                                  type lines, get continuations
    """


def main(arguments: list[str] | None = None) -> int:
    """Run the program; returns the exit code and prints no traceback for a K3Error.

    With `--json` what went wrong is one JSON value on standard output too.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    with output.streams():
        return _main(arguments)


def _main(arguments: list[str]) -> int:
    before = signal.signal(signal.SIGTERM, _interrupt)
    warnings.showwarning = _show_warning
    try:
        return _run(arguments or ["--help"], as_json="--json" in arguments)
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(arguments: list[str], *, as_json: bool) -> int:
    try:
        code = _command(arguments)
        sys.stdout.flush()
    except TyperException as error:
        return _end(_usage(error), USAGE, as_json=as_json)
    except K3Error as error:
        return _end(str(error), USAGE, as_json=as_json)
    except output.Interrupted as error:
        return _end(f"interrupted: {error}", INTERRUPTED, as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        return _unread()
    except SystemExit as error:
        # Typer ends the program itself where a write inside a verb fails.
        if isinstance(error.__context__, BrokenPipeError):
            return _unread()
        raise
    except OSError as error:
        return _end(_system(error), USAGE, as_json=as_json)
    if code == INTERRUPTED:
        return _end("interrupted", code, as_json=as_json)
    return code or 0


def _unread() -> int:
    """The reader of our output has left: nobody is there to be told."""
    output.silence()
    return 0


def _command(arguments: list[str]) -> Any:
    if arguments == ["--version"]:
        return print(f"k3 {k3.__version__}")
    return get_command(app).main(arguments, prog_name="k3", standalone_mode=False)


def _end(sentence: str, code: int, *, as_json: bool) -> int:
    # What was half written, or the ^C, keeps its line.
    before = "\n" if code == INTERRUPTED else ""
    print(f"{before}k3: {sentence}", file=sys.stderr)
    try:
        if as_json:
            output.json_line({"ok": False, "error": sentence})
        sys.stdout.flush()
    except OSError:
        # Standard output is what failed; what it still holds would fail again.
        output.silence()
    return code


def _system(error: OSError) -> str:
    """One line for what the system refuses: a full disk, a file without rights."""
    where = " -> ".join(str(f) for f in (error.filename, error.filename2) if f)
    what = f"cannot read or write {where or 'standard output or a file'}"
    return f"{what}: {error.strerror or error}; give another place, or make room"


def _usage(error: TyperException) -> str:
    """One line for a command that cannot be read, and where to look."""
    path = getattr(getattr(error, "ctx", None), "command_path", "k3")
    words = _value(error) or error.format_message()
    words = words.replace(". Did you", "; did you").replace(" Did you", "; did you")
    return f"{words.rstrip('.?')}; {path} --help lists what there is"


def _value(error: TyperException) -> str:
    """The same for a value that is no number; empty where it is something else."""
    option: Any = getattr(error, "param", None)
    cause: Any = error.__cause__
    if option is None or not hasattr(cause, "errors"):
        return ""
    first = cause.errors()[0]
    kind = first["type"].split("_")[0]
    if kind not in NUMBERS:
        return ""
    return f"{option.opts[-1]} needs {NUMBERS[kind]}: got {first['input']!r}"


def _interrupt(*_: Any) -> NoReturn:
    raise KeyboardInterrupt


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"k3: note: {message}", file=sys.stderr)
