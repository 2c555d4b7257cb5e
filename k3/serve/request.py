"""What a client asks of the engine, and what comes back for it."""

import struct
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from torch import Tensor

from k3.errors import RequestError
from k3.model.completion import Choice, GenerateOptions, Token
from k3.serve.keys import Image

Routes: TypeAlias = tuple[int, Tensor]
Finish: TypeAlias = Literal["", "stop", "length", "abort", "error"]


@runtime_checkable
class Constraint(Protocol):
    """Which tokens may come next, for one sequence; it sees every token chosen."""

    def mask(self) -> Tensor | None:
        """The allowed ids, bool [W] on the CPU; None if all are."""

    def accept(self, token_id: int, /) -> None:
        """Go on by a token that was chosen, an end of message included."""

    def rollback(self, n: int, /) -> None:
        """Take the last n tokens back."""

    def fork(self) -> "Constraint":
        """An independent copy at the same place."""

    def done(self) -> bool:
        """Whether nothing may follow: the sequence then ends with `stop`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A prompt and what is wanted of it, n times.

    `pixels` and `grids` are those of `Model.encode_images`, one grid for each of
    `images`. `salt` separates tenants in the prefix cache. `prompt_logprobs` asks for
    the log-probabilities of the prompt's tokens and so many alternatives to each; such
    a prompt is run whole, whatever is cached. In a prompt that is `spoken` placeholders
    outside of `images` are tokens that a model wrote before, and go on as such.
    """

    id: str
    tokens: tuple[int, ...]
    options: GenerateOptions
    n: int = 1
    images: tuple[Image, ...] = ()
    pixels: Tensor | None = None
    grids: Tensor | None = None
    salt: bytes = b""
    prompt_logprobs: int | None = None
    constraint: Constraint | None = None
    spoken: bool = False

    def __post_init__(self) -> None:
        """Refuse what no engine could run; limits are the engine's to check."""
        for name, least in (("n", 1), ("prompt_logprobs", 0)):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (whole and value >= least):
                raise RequestError(
                    f"{name} must be a whole number, at least {least}: got {value!r}"
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """What one step gave one sample of a request; the last one has a `finish`.

    `prompt_logprobs` come with the first output of each sample, None for the first
    token. `drafted` and `accepted` count tokens of this step. `routes` holds, where the
    engine tells them, the experts of tokens that were run: a place and [n layers k].
    """

    request_id: str
    index: int
    tokens: tuple[Token, ...] = ()
    finish: Finish = ""
    cached_tokens: int = 0
    prompt_logprobs: list[Choice | None] | None = None
    error: str | None = None
    drafted: int = 0
    accepted: int = 0
    routes: tuple[Routes, ...] = ()


def derive_seed(seed: int, index: int) -> int:
    """The seed of sample `index`: the first has the request's own."""
    if index == 0:
        return seed
    made = blake2b(struct.pack("<qq", seed, index), digest_size=8, person=b"k3 seed")
    return int.from_bytes(made.digest(), "little") >> 1
