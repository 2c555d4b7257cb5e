"""The next token of each sequence; what is wrong with one stays with it."""

from collections.abc import Sequence as Many
from typing import TypeAlias

import torch
from torch import Tensor

from k3.errors import RequestError
from k3.kernels import sample
from k3.model.completion import Choice, Token
from k3.serve.sequence import Sequence

Chosen: TypeAlias = Token | Exception


def choose(logits: Tensor, sequences: Many[Sequence]) -> list[Chosen]:
    """Draw from logits [S W] and append: a token for each, or what went wrong.

    A constraint rules tokens out first, so log-probabilities are of those allowed.
    """
    found: list[Chosen | None] = [None] * len(sequences)
    if any(sequence.constraint for sequence in sequences):
        logits = logits.clone()
    for row, sequence in enumerate(sequences):
        try:
            _rule_out_(logits[row], sequence)
        except Exception as error:
            found[row] = error
    usable = _usable(logits)
    rows = [row for row, error in enumerate(found) if error is None and usable[row]]
    if rows:
        taken = sample.sample(
            logits[rows],
            [sequences[row].running.sampling for row in rows],
            [sequences[row].running.generator for row in rows],
        )
        for row, drawn in zip(rows, _drawn(taken), strict=True):
            found[row] = _taken(sequences[row], *drawn)
    return [each or no_choice(s) for each, s in zip(found, sequences, strict=True)]


def _rule_out_(logits: Tensor, sequence: Sequence) -> None:
    mask = None if sequence.constraint is None else sequence.constraint.mask()
    if mask is not None:
        logits.masked_fill_(~mask.to(logits.device), -torch.inf)


def _usable(logits: Tensor) -> list[bool]:
    """Which rows are a distribution: no NaN, and something finite above all."""
    usable: list[bool] = torch.isfinite(logits.amax(-1)).tolist()
    return usable


def _drawn(taken: sample.Sample) -> list[tuple[int, Choice]]:
    columns = zip(
        taken.tokens.tolist(),
        taken.logprobs.tolist(),
        taken.top_ids.tolist(),
        taken.top_logprobs.tolist(),
        strict=True,
    )
    return [
        (token, Choice(logprob, tuple(zip(ids, values, strict=True))))
        for token, logprob, ids, values in columns
    ]


def _taken(sequence: Sequence, token_id: int, choice: Choice) -> Chosen:
    try:
        most = sequence.running.sampling.logprobs
        chosen = Choice(choice.logprob, choice.alternatives[:most])
        return sequence.take(token_id, chosen)
    except Exception as error:
        return error


def no_choice(sequence: Sequence) -> RequestError:
    """What a sequence ends with that has no next token."""
    why = (
        "the constraint allows no token here"
        if sequence.constraint is not None
        else "the model gave logits that are no numbers; check the weights"
    )
    return RequestError(
        f"request {sequence.request.id} cannot go on after "
        f"{len(sequence.chain) - len(sequence.request.tokens)} tokens: {why}"
    )
