"""Tokens after a prompt: prefill once, then one step a token.

A sequence in a batch gives what it gives alone: its own options, its own random
numbers, its own end.
"""

import operator
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from k3.config import K3Config
from k3.errors import RequestError
from k3.kernels import sample
from k3.model.completion import Choice, Running
from k3.model.completion import Completion as Completion
from k3.model.completion import Decodes as Decodes
from k3.model.completion import GenerateOptions as GenerateOptions
from k3.model.completion import Token as Token
from k3.model.decode_state import DecodeState
from k3.model.model import Model


def generate(
    model: Model,
    prompts: Sequence[Sequence[int]],
    options: GenerateOptions | Sequence[GenerateOptions],
    *,
    tokenizer: Decodes | None = None,
    features: Float[Tensor, "N D"] | None = None,
) -> list[Completion]:
    """Complete prompts of different lengths together, each as if it were alone.

    `options` is one for all or one for each prompt; prompts that share a seed share
    their random numbers. `features` are the image rows of all prompts in order.

    Raises: RequestError for an empty prompt, an id outside the vocabulary, more
    tokens than the context holds, stop strings without a tokenizer.
    """
    sequences = _start(model, prompts, options, tokenizer)
    tokens: list[list[Token]] = [[] for _ in sequences]
    for row, token in _run(model, prompts, sequences, features):
        tokens[row].append(token)
    return [_completion(each) for each in tokens]


def stream(
    model: Model,
    prompt: Sequence[int],
    options: GenerateOptions,
    *,
    tokenizer: Decodes | None = None,
    features: Float[Tensor, "N D"] | None = None,
) -> Iterator[Token]:
    """The tokens of one prompt as they come; checks the request before the first."""
    sequences = _start(model, [prompt], options, tokenizer)
    return (token for _, token in _run(model, [prompt], sequences, features))


def _start(
    model: Model,
    prompts: Sequence[Sequence[int]],
    options: GenerateOptions | Sequence[GenerateOptions],
    tokenizer: Decodes | None,
) -> list[Running]:
    """Check the whole request, then make its sequences."""
    each = [options] * len(prompts) if isinstance(options, GenerateOptions) else options
    if len(each) != len(prompts):
        raise RequestError(
            f"generate needs one set of options, or one for each prompt: got "
            f"{len(each)} for {len(prompts)} prompts"
        )
    if not all(isinstance(option, GenerateOptions) for option in each):
        raise RequestError(f"options must be GenerateOptions: got {options!r}")
    for prompt, option in zip(prompts, each, strict=True):
        _check(model.config, prompt, option, tokenizer)
    eos = model.config.eos_token_id
    return [Running(option, eos, tokenizer) for option in each]


def _check(
    config: K3Config,
    prompt: Sequence[int],
    options: GenerateOptions,
    tokenizer: Decodes | None,
) -> None:
    vocabulary, context = config.text.vocab_size, config.text.max_position_embeddings
    _check_ids(prompt)
    if len(prompt) == 0:
        raise RequestError(
            "a prompt needs at least one token: got none; give a text, or one id to "
            "start from"
        )
    wrong = [i for i in (*prompt, *options.stop_ids) if not 0 <= i < vocabulary]
    if wrong:
        raise RequestError(
            f"token ids must be from 0 to {vocabulary - 1}: got {wrong[0]}; is the "
            f"tokenizer of another checkpoint in use?"
        )
    if len(prompt) + options.max_tokens > context:
        raise RequestError(
            f"prompt and max_tokens must fit max_position_embeddings {context}: got "
            f"{len(prompt)} + {options.max_tokens}; shorten one of them"
        )
    if options.stop and tokenizer is None:
        raise RequestError(
            "stop strings act on text: pass the tokenizer, or use stop_ids"
        )


def _check_ids(prompt: Sequence[int]) -> None:
    """Refuse a prompt that is no list of whole numbers; numpy's and torch's are."""
    try:
        if isinstance(prompt, str | bytes) or any(isinstance(i, bool) for i in prompt):
            raise TypeError
        for i in prompt:
            operator.index(i)
    except TypeError:
        raise RequestError(
            f"a prompt is a list of token ids, generate takes a list of prompts: got "
            f"{prompt!r}; encode text with the tokenizer first"
        ) from None


def _run(
    model: Model,
    prompts: Sequence[Sequence[int]],
    sequences: list[Running],
    features: Tensor | None,
) -> Iterator[tuple[int, Token]]:
    """(sequence, token) in the order in which they are chosen."""
    if all(sequence.ended for sequence in sequences):
        return
    logits, state = _prefill(model, prompts, features)
    while True:
        live = [row for row, sequence in enumerate(sequences) if not sequence.ended]
        for row, chosen in zip(live, _choose(logits, sequences, live), strict=True):
            yield row, sequences[row].take(*chosen)
        if all(sequence.ended for sequence in sequences):
            return
        # A sequence that has ended keeps its row: its logits are not looked at.
        last = [[sequence.last_id] for sequence in sequences]
        logits, state = _step(model, torch.tensor(last, device=logits.device), state)


@torch.no_grad()
def _prefill(
    model: Model, prompts: Sequence[Sequence[int]], features: Tensor | None
) -> tuple[Tensor, DecodeState]:
    """All prompts packed into one row; logits [B 1 W] after the last token of each."""
    packed = [operator.index(token) for prompt in prompts for token in prompt]
    ends = torch.tensor([0, *map(len, prompts)], device=model.device).cumsum(0)
    logits, state = model(
        torch.tensor([packed], device=model.device),
        state=model.init_state(len(prompts)),
        features=features,
        cu_seqlens=ends,
        logits="last",
    )
    return logits, state


@torch.no_grad()
def _step(model: Model, last: Tensor, state: DecodeState) -> tuple[Tensor, DecodeState]:
    return model.step(last, state)


def _choose(
    logits: Tensor, sequences: list[Running], live: list[int]
) -> list[tuple[int, Choice]]:
    """A token for each sequence that has not ended."""
    rows = [sequences[row] for row in live]
    last = logits[:, -1]
    out = sample.sample(
        last if len(live) == len(last) else last[live],
        [sequence.sampling for sequence in rows],
        [sequence.generator for sequence in rows],
    )
    columns = zip(
        out.tokens.tolist(),
        out.logprobs.tolist(),
        out.top_ids.tolist(),
        out.top_logprobs.tolist(),
        rows,
        strict=True,
    )
    return [
        (token, Choice(logprob, tuple(zip(ids, values, strict=True))[: _most(row)]))
        for token, logprob, ids, values, row in columns
    ]


def _most(sequence: Running) -> int:
    return sequence.sampling.logprobs


def _completion(tokens: list[Token]) -> Completion:
    return Completion(
        ids=[token.id for token in tokens],
        logprobs=[token.logprob for token in tokens],
        alternatives=[token.alternatives for token in tokens],
        text="".join(token.text for token in tokens),
        finish=tokens[-1].finish if tokens else "length",
    )
