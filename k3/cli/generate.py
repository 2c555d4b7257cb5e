"""`k3 generate`: continue prompts."""

import time
from typing import TYPE_CHECKING, Any

import typer

from k3.cli import loading, options, output, prompts, request

if TYPE_CHECKING:
    from k3.model.generate import Completion, GenerateOptions


def generate(
    context: typer.Context,
    model: options.Model = "tiny",
    *,
    prompt: options.Prompts = None,
    ids: options.Ids = "",
    image: options.Images = None,
    max_tokens: options.MaxTokens = 64,
    temperature: options.Temperature = 1.0,
    top_p: options.TopP = 0.95,
    top_k: options.TopK = 0,
    min_p: options.MinP = 0.0,
    seed: options.Seed = 0,
    stop: options.Stop = None,
    stop_id: options.StopId = None,
    ignore_eos: options.IgnoreEos = False,
    logprobs: options.Logprobs = None,
    stream: options.Stream = True,
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    experts: options.Experts = "packed",
    settings: options.Set = None,
    json: options.Json = False,
) -> None:
    """Continue a text, with or without pictures.

    \b
    k3 generate -p "Return True if" --temperature 0.7
    echo "The with statement" | k3 generate
    k3 generate tiny --ids 1,2,3 --seed 7 --logprobs 2
    """
    # As the first statement: here locals() is the parameters and nothing else.
    values = request.values(context, locals())
    path = loading.find(model, perhaps_text=not prompt)
    typed = prompts.typed(prompt, ids, image)
    loaded = loading.load_frozen(path, dtype=dtype, device=device, experts=experts)
    given, asked = prompts.read(loaded, typed), request.options(values)
    if stream and not json and logprobs is None and len(given) == 1:
        return print_stream(loaded, given[0], asked)
    print_whole(loaded, given, asked, as_json=json)


def print_stream(
    loaded: loading.Loaded, prompt: prompts.Prompt, asked: "GenerateOptions"
) -> None:
    """Print the text of one prompt as it comes; ids where there is no tokenizer."""
    from k3.model.generate import stream

    note_ids(loaded)
    started, count, finish = time.perf_counter(), 0, "length"
    tokens = stream(
        loaded.model,
        prompt.ids,
        asked,
        tokenizer=loaded.tokenizer,
        features=prompt.features,
    )
    output.echo(prompt.text)
    for token in tokens:
        shown = token.text if loaded.tokenizer else f"{token.id} "
        print(shown, end="", flush=True)
        count, finish = count + 1, token.finish
    print()
    seconds = time.perf_counter() - started
    rate = f"{count / seconds:.1f} tok/s" if count else "nothing asked"
    output.note(f"k3: {count} tokens, {rate}, ended by {finish}")


def print_whole(
    loaded: loading.Loaded,
    given: list[prompts.Prompt],
    asked: "GenerateOptions",
    *,
    as_json: bool,
) -> None:
    """Print everything at the end: several prompts, log-probabilities, or JSON."""
    from k3.model.generate import generate as run

    started = time.perf_counter()
    done = run(
        loaded.model,
        [prompt.ids for prompt in given],
        asked,
        tokenizer=loaded.tokenizer,
        features=prompts.all_features(given),
    )
    seconds = time.perf_counter() - started
    reports = [report(loaded, *pair) for pair in zip(given, done, strict=True)]
    if as_json:
        count = sum(len(completion.ids) for completion in done)
        output.json_value(
            {
                "model": str(loaded.path),
                "completions": reports,
                "seconds": seconds,
                "tokens_per_second": count / seconds,
            }
        )
        return
    note_ids(loaded)
    for each in reports:
        print_plain(each, len(reports) > 1, asked.logprobs)


def note_ids(loaded: loading.Loaded) -> None:
    """Say why there are numbers where a text is expected."""
    if loaded.tokenizer is None:
        output.warn(
            f"{loaded.path} has no tiktoken.model: token ids are printed, not text"
        )


def report(
    loaded: loading.Loaded, prompt: prompts.Prompt, completion: "Completion"
) -> dict[str, Any]:
    """One completion as plain values."""
    return {
        "prompt": prompt.text,
        "prompt_ids": prompt.ids,
        "text": completion.text if loaded.tokenizer else None,
        "ids": completion.ids,
        "tokens": [text_of(loaded, i) for i in completion.ids],
        "logprobs": completion.logprobs,
        "alternatives": [
            [
                {"id": i, "text": text_of(loaded, i), "logprob": logprob}
                for i, logprob in each
            ]
            for each in completion.alternatives
        ],
        "finish": completion.finish,
    }


def text_of(loaded: loading.Loaded, token: int) -> str | None:
    """One token as text; bytes that are no text alone are shown as U+FFFD."""
    return loaded.tokenizer.decode([token]) if loaded.tokenizer else None


def print_plain(each: dict[str, Any], titled: bool, alternatives: int) -> None:
    """One completion for a person: the text, then a line for each token if asked."""
    if titled:
        print(f"== {each['prompt'] or each['prompt_ids']}")
    else:
        output.echo(each["prompt"])
    print(each["ids"] if each["text"] is None else each["text"])
    if not alternatives:
        return
    print(f"{'id':>8} {'logprob':>8}  {'text':<14} alternatives")
    columns = (each[key] for key in ("ids", "logprobs", "tokens", "alternatives"))
    for token, logprob, text, others in zip(*columns, strict=True):
        row = "  ".join(
            f"{o['id']} {output.quoted(o['text'])} {o['logprob']:.3f}" for o in others
        )
        print(f"{token:8} {logprob:8.3f}  {output.quoted(text):<14} {row}")
