"""Grammars as constraints: llguidance says which tokens may come next."""

import functools
from typing import Any

import numpy as np
import torch
from torch import Tensor

from k3.data import split
from k3.data.tokenizer import Tokenizer
from k3.data.xtml.segments import END
from k3.errors import RequestError

FIELD = "response_format"


class GrammarConstraint:
    """One sequence on its way through a grammar; ids up to `width`, the vocabulary's.

    A grammar that has outgrown its limits raises RequestError, which ends the request.
    """

    def __init__(self, matcher: Any, width: int) -> None:
        self._matcher, self._width = matcher, width

    def mask(self) -> Tensor:
        """The allowed ids, bool [W]."""
        packed = self._matcher.compute_bitmask()
        self._check()
        bits = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")
        allowed = np.zeros(self._width, bool)
        known = min(self._width, len(bits))
        allowed[:known] = bits[:known]
        return torch.from_numpy(allowed)

    def accept(self, token_id: int) -> None:
        """Go on by one token."""
        self._matcher.consume_token(token_id)
        self._check()

    def rollback(self, n: int) -> None:
        """Take the last n tokens back."""
        self._matcher.rollback(n)
        self._check()

    def fork(self) -> "GrammarConstraint":
        """An independent copy at the same place."""
        return GrammarConstraint(self._matcher.deep_copy(), self._width)

    def done(self) -> bool:
        """Whether the grammar is complete and nothing may follow."""
        return bool(self._matcher.is_stopped())

    def _check(self) -> None:
        if self._matcher.is_error():
            raise RequestError(
                f"{FIELD} must be a grammar that a token can follow: "
                f"{_first_line(self._matcher.get_error())}; simplify the schema"
            )


class Compiler:
    """Grammars over one vocabulary; the vocabulary is prepared once, when needed."""

    def __init__(self, tokenizer: Tokenizer, width: int) -> None:
        self._tokenizer, self._width = tokenizer, width

    @functools.cached_property
    def vocabulary(self) -> Any:
        """The tokenizer as llguidance has it."""
        library = _library()
        named = self._tokenizer.named_specials
        count = self._tokenizer.num_ranks
        special = {f"<|reserved_token_{i}|>": i for i in range(count, self._width)}
        taken = set(named.values())
        special = {name: i for name, i in special.items() if i not in taken} | named
        return library.LLTokenizer.from_tiktoken(
            encoder=self._tokenizer.ranks,
            special_tokens=special,
            pattern=split.PATTERN,
            eos_token=[self._tokenizer.special_id(END)],
            n_vocab=max(self._width, self._tokenizer.vocab_size),
            slices=None,
        )

    def compile(self, lark: str) -> GrammarConstraint:
        """A constraint at the start of a grammar.

        Raises: RequestError for a schema that cannot be held to.
        """
        library = _library()
        grammar = library.LLMatcher.grammar_from_lark(lark)
        wrong, notes = library.LLMatcher.validate_grammar_with_warnings(
            grammar, self.vocabulary
        )
        if wrong:
            raise RequestError(
                f"{FIELD} must have a schema that can be enforced: "
                f"{_first_line(notes[0])}; change it"
            )
        matcher = library.LLMatcher(self.vocabulary, grammar, log_level=0)
        return GrammarConstraint(matcher, self._width)


def _first_line(text: str) -> str:
    """What the library says, without its dump and without the place in our grammar."""
    line = text.strip().split("\n", 1)[0]
    return line.split("): ", 1)[-1][:200]


def _library() -> Any:
    try:
        import llguidance
    except ImportError:
        raise RequestError(
            "structured output needs the serve extra: pip install 'k3[serve]'"
        ) from None
    return llguidance
