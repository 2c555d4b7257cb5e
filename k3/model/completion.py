"""What is asked of one sequence, how it grows, and what it gives."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from k3.errors import RequestError
from k3.kernels import sample
from k3.model.stop import StopText


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateOptions:
    """How a sequence goes on and where it ends.

    It ends after `max_tokens`, at a token of `stop_ids`, at the configuration's end
    of message unless `ignore_eos`, or before a text of `stop`. `logprobs` asks for
    that many alternatives to each token.
    """

    max_tokens: int = 128
    temperature: float = 1.0
    top_p: float = 0.95
    top_k: int = 0
    min_p: float = 0.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    stop_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    logprobs: int = 0

    def __post_init__(self) -> None:
        """Refuse values that mean nothing; the sampler checks its own."""
        for name in ("max_tokens", "seed"):
            value = getattr(self, name)
            if not _is_int(value):
                raise RequestError(f"{name} must be a whole number: got {value!r}")
        if self.max_tokens < 0:
            raise RequestError(
                f"max_tokens must be at least 0: got {self.max_tokens}; 0 generates "
                f"nothing"
            )
        self._check_ends()
        if not 0 <= self.seed < 2**63:
            raise RequestError(f"seed must be from 0 to 2^63 - 1: got {self.seed}")
        _ = self.sampling

    def _check_ends(self) -> None:
        """Refuse stops of another kind; a bare string would be a stop per letter."""
        texts = isinstance(self.stop, tuple | list)
        if not texts or not all(isinstance(s, str) and s for s in self.stop):
            raise RequestError(
                "stop must be a tuple of texts of at least one character: got "
                f"{self.stop!r}; write ('text',) for one"
            )
        ids = isinstance(self.stop_ids, tuple | list | set | frozenset)
        if not ids or not all(_is_int(i) and i >= 0 for i in self.stop_ids):
            raise RequestError(
                f"stop_ids must be a tuple of token ids: got {self.stop_ids!r}"
            )
        if not isinstance(self.ignore_eos, bool):
            raise RequestError(f"ignore_eos is True or False: got {self.ignore_eos!r}")

    @property
    def sampling(self) -> sample.SampleOptions:
        """The part that chooses one token."""
        return sample.SampleOptions(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            logprobs=self.logprobs,
        )


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """One generated token and the text that has become safe to show with it.

    `finish` is empty until the last token, then `stop` or `length`.
    """

    id: int
    logprob: float
    text: str
    alternatives: tuple[tuple[int, float], ...]
    finish: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """All that one prompt gave; a stop id is the last of `ids` but not in `text`."""

    ids: list[int]
    logprobs: list[float]
    alternatives: list[tuple[tuple[int, float], ...]]
    text: str
    finish: str


@runtime_checkable
class TextDecoder(Protocol):
    """Turns ids into text as they come, as `k3.data.stream.StreamDecoder` does."""

    def push(self, token_id: int, /) -> str:
        """The text that this token completes."""

    def flush(self) -> str:
        """What is left when no more tokens come."""


@runtime_checkable
class Decodes(Protocol):
    """A tokenizer, as far as generation needs one."""

    def stream(self) -> TextDecoder:
        """A new decoder for one sequence."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the sampler says of the token that it chose."""

    logprob: float
    alternatives: tuple[tuple[int, float], ...]


class Running:
    """One sequence under way: its random numbers, its text, whether it has ended."""

    def __init__(
        self, options: GenerateOptions, eos: int | None, tokenizer: Decodes | None
    ) -> None:
        ends = set(options.stop_ids)
        self._ends = ends if options.ignore_eos or eos is None else ends | {eos}
        self._left = options.max_tokens
        self._decoder = tokenizer.stream() if tokenizer else None
        self._stop = StopText(options.stop)
        self.sampling = options.sampling
        self.generator = torch.Generator().manual_seed(options.seed)
        self.ended = options.max_tokens == 0
        self.last_id = 0

    def take(self, token_id: int, chosen: Choice, *, last: bool = False) -> Token:
        """Append one token: its text, and whether it is the last.

        `last` ends the sequence here with `stop`, whatever the token is.
        """
        self._left -= 1
        self.last_id = token_id
        is_end = token_id in self._ends
        text = "" if is_end else self._shown(token_id)
        finish = "stop" if is_end or last or self._stop.found else ""
        if not finish and self._left == 0:
            finish = "length"
        if finish and self._decoder:
            text += self._stop.push(self._decoder.flush()) + self._stop.flush()
        self.ended = bool(finish)
        return Token(
            id=token_id,
            logprob=chosen.logprob,
            text=text,
            alternatives=chosen.alternatives,
            finish=finish,
        )

    def _shown(self, token_id: int) -> str:
        return self._stop.push(self._decoder.push(token_id)) if self._decoder else ""
