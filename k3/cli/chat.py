"""`k3 chat`: lines in, continuations out."""

import sys
from typing import TYPE_CHECKING, Any

import typer

from k3.cli import loading, options, output, prompts, remote, request, settings
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.model.generate import GenerateOptions

GREETING = """\
{model}: every line is continued, with what came before as its context.
This is plain text continuation; for K3's chat format start k3 serve and give its URL.
/reset forgets the context, /quit or Ctrl-D ends."""


def chat(
    context: typer.Context,
    model: options.ModelOrUrl = "tiny",
    *,
    max_tokens: options.MaxTokens = 64,
    temperature: options.Temperature = 1.0,
    top_p: options.TopP = 0.95,
    top_k: options.TopK = 0,
    min_p: options.MinP = 0.0,
    seed: options.Seed = 0,
    stop: options.Stop = None,
    stop_id: options.StopId = None,
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    experts: options.Experts = "packed",
    settings: options.Set = None,
    json: options.JsonLines = False,
) -> None:
    """Type lines and read how the model goes on; lines of a pipe work too.

    \b
    k3 chat
    k3 chat tiny --temperature 0.7 --stop "."
    echo "The with statement" | k3 chat --json
    k3 chat http://localhost:8000
    """
    # As the first statement: here locals() is the parameters and nothing else.
    values = request.values(context, locals())
    if remote.is_url(model):
        return remote.chat(model, _typed(context, values), read_line, as_json=json)
    loaded = loading.load_frozen(
        loading.find(model), dtype=dtype, device=device, experts=experts
    )
    local(loaded, request.options(values), as_json=json)


def local(loaded: loading.Loaded, asked: "GenerateOptions", *, as_json: bool) -> None:
    """Lines in, continuations out, until the lines end."""
    loaded.needed_tokenizer()
    output.note(GREETING.format(model=loaded.path.name))
    history: list[int] = []
    while (line := read_line()) is not None:
        if line == "/quit":
            return
        if line == "/reset":
            history = []
        elif line:
            history = turn(loaded, history, line, asked, as_json=as_json)


def _typed(context: typer.Context, values: dict[str, Any]) -> dict[str, Any]:
    """The options that were given: a server has defaults of its own.

    Raises: RequestError for options of a local model.
    """
    given = set(settings.parse(context.params["settings"] or []))
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            given.add(name)
    for name in ("dtype", "device", "experts"):
        if name in given:
            raise RequestError(
                f"--{name} is an option of a local model: got a URL; leave it out"
            )
    names = {request.PARAMETERS.get(key, key): key for key in values}
    return {
        key: value
        for name, key in names.items()
        if given & {name, key}
        for value in [values[key]]
    }


def turn(
    loaded: loading.Loaded,
    history: list[int],
    line: str,
    asked: "GenerateOptions",
    *,
    as_json: bool,
) -> list[int]:
    """The history after an answer; a person at a terminal may go on after a refusal."""
    title(line, as_json=as_json)
    try:
        history = history + loaded.encode(line)
        return history + answer(loaded, history, asked, as_json=as_json)
    except RequestError as error:
        if not sys.stdin.isatty():
            raise
        output.note(f"k3: {error}\nk3: the context is empty again")
        return []


def read_line() -> str | None:
    """The next line without its end; None when there are no more."""
    if sys.stdin.isatty():
        print("> ", end="", file=sys.stderr, flush=True)
    try:
        line = sys.stdin.readline()
    except UnicodeDecodeError as error:
        raise prompts.not_utf8(error) from error
    return prompts.line(line) if line else None


def title(line: str, *, as_json: bool) -> None:
    """The line before its answer, as generate does, where nobody sees it typed."""
    seen = sys.stdin.isatty() and sys.stdout.isatty()
    if not seen and not as_json:
        print(f"== {line}", flush=True)


def answer(
    loaded: loading.Loaded,
    history: list[int],
    asked: "GenerateOptions",
    *,
    as_json: bool,
) -> list[int]:
    """Print the continuation, as text or as one line of JSON; returns its ids."""
    from k3.model.generate import stream

    ids: list[int] = []
    text, finish = "", "length"
    for token in stream(loaded.model, history, asked, tokenizer=loaded.tokenizer):
        ids.append(token.id)
        text, finish = text + token.text, token.finish
        if not as_json:
            print(token.text, end="", flush=True)
    if as_json:
        output.json_line({"text": text, "ids": ids, "finish": finish})
    else:
        print(flush=True)
    return ids
