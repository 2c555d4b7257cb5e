"""`k3 generate`: continue prompts."""

import time
from typing import TYPE_CHECKING, Any

from k3.cli import loading, options, output, prompts, request

if TYPE_CHECKING:
    from k3.model.generate import Completion, GenerateOptions


def generate(
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
    k3 generate -p "The assert statement"
    k3 generate -p "The with statement" --temperature 0 --max-tokens 20 --json
    k3 generate tiny --ids 1,2,3 --seed 7 --logprobs 2
    """
    # As the first statement: here locals() is the parameters and nothing else.
    asked = request.generate_options(locals())
    loaded = loading.load(model, dtype=dtype, device=device, experts=experts)
    given = prompts.read(loaded, prompt or [], ids, image or [])
    whole = json or logprobs is not None or not stream or len(given) > 1
    if whole:
        print_whole(loaded, given, asked, as_json=json)
    else:
        print_stream(loaded, given[0], asked)


def print_stream(
    loaded: loading.Loaded, prompt: prompts.Prompt, asked: "GenerateOptions"
) -> None:
    """Print the text of one prompt as it comes; ids where there is no tokenizer."""
    from k3.model.generate import stream

    started, count, finish = time.perf_counter(), 0, "length"
    tokens = stream(
        loaded.model,
        prompt.ids,
        asked,
        tokenizer=loaded.tokenizer,
        features=prompt.features,
    )
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
    for each in reports:
        print_plain(each, len(reports) > 1, asked.logprobs)


def report(
    loaded: loading.Loaded, prompt: prompts.Prompt, completion: "Completion"
) -> dict[str, Any]:
    """One completion as plain values."""
    return {
        "prompt": prompt.text,
        "prompt_ids": prompt.ids,
        "text": completion.text if loaded.tokenizer else None,
        "ids": completion.ids,
        "logprobs": completion.logprobs,
        "alternatives": [
            [{"id": i, "logprob": logprob} for i, logprob in each]
            for each in completion.alternatives
        ],
        "finish": completion.finish,
    }


def print_plain(each: dict[str, Any], titled: bool, alternatives: int) -> None:
    """One completion for a person: the text, then a line for each token if asked."""
    if titled:
        print(f"== {each['prompt'] or each['prompt_ids']}")
    print(each["ids"] if each["text"] is None else each["text"])
    if not alternatives:
        return
    for token, logprob, others in zip(
        each["ids"], each["logprobs"], each["alternatives"], strict=True
    ):
        row = "  ".join(f"{o['id']} {o['logprob']:.3f}" for o in others)
        print(f"{token:8} {logprob:8.3f}   {row}")
