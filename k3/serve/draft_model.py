"""A small K3 as a draft: its own states follow the sequences, a round behind."""

from collections.abc import Sequence
from itertools import accumulate, chain

import torch
from torch import Tensor

from k3.errors import RequestError
from k3.model import DecodeState, Model
from k3.serve.draft import Chance, Proposal, draw, proposals

PASS_TOKENS = 1024
"""Tokens of a new context that one pass runs."""


class ModelDraft:
    """Proposes what a smaller model with the same tokens would say.

    One state holds a row for each context of the last round, with what was proposed;
    `ran` are the tokens of each row. A row whose proposal was rejected goes back to
    where it left the context; a context that no row leads to is run from its start.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.state: DecodeState | None = None
        self.ran: list[list[int]] = []

    def check(self, vocab_size: int) -> None:
        """Refuse a model with other tokens."""
        own = self.model.config.text.vocab_size
        if own != vocab_size:
            raise RequestError(
                f"a draft model has the tokens of its model, {vocab_size}: got {own}; "
                "train one with the same tokenizer"
            )

    @torch.inference_mode()
    def propose(
        self, contexts: list[list[int]], k: int, chances: Sequence[Chance] = ()
    ) -> list[Proposal]:
        """k tokens behind each context, drawn as its sequence draws its own."""
        if not contexts or k < 1:
            return [Proposal(()) for _ in contexts]
        logits, state = self._follow(contexts, k)
        laws: list[Tensor | None] = []
        ids: list[Tensor] = []
        for step in range(k):
            if step:
                logits, state = self.model.step(ids[-1][:, None], state)
            law, drawn = draw(logits[:, -1], chances)
            laws.append(law)
            ids.append(drawn.to(self.model.device))
        made = proposals(ids, laws, chances)
        self.state = state
        self.ran = [[*c, *p.ids[:-1]] for c, p in zip(contexts, made, strict=True)]
        return made

    def _follow(self, contexts: list[list[int]], k: int) -> tuple[Tensor, DecodeState]:
        """Logits [B 1 W] behind each context, and the state of all of them."""
        state, starts = self._rows(contexts, k)
        missing = [c[n:] for c, n in zip(contexts, starts, strict=True)]
        ids = torch.tensor([[*chain.from_iterable(missing)]], device=self.model.device)
        ends = torch.tensor([0, *accumulate(map(len, missing))])
        out, state = self.model(ids, state=state, cu_seqlens=ends, logits="last")
        return out, state

    def _rows(self, contexts: list[list[int]], k: int) -> tuple[DecodeState, list[int]]:
        """A state with a row for each context, and how many of its tokens it has."""
        found = [self._match(row, context) for row, context in enumerate(contexts)]
        known = [match for match in found if match]
        states = []
        if self.state is not None and known and self.state.keep_inputs == k:
            state, rows = self.state, [row for row, _ in known]
            if rows != list(range(state.batch)):
                state = state.select(rows)
            back = [state.lens[i] - common for i, (_, common) in enumerate(known)]
            states.append(state.rewind(back))
        else:
            found = [None] * len(found)
        new = [c for c, match in zip(contexts, found, strict=True) if not match]
        states += [self._prefill(context, k) for context in new]
        state = states[0] if len(states) == 1 else DecodeState.join(states)
        # Known rows come first, new ones after them: back to the order asked for.
        order = sorted(range(len(found)), key=lambda i: found[i] is None)
        place = [order.index(i) for i in range(len(found))]
        if place != list(range(len(found))):
            state = state.select(place)
        self.state = None
        return state, list(state.lens)

    def _match(self, row: int, context: list[int]) -> tuple[int, int] | None:
        """The row that leads to a context, its own place first, and how far."""
        others = [j for j in range(len(self.ran)) if j != row]
        for j in [row, *others] if row < len(self.ran) else others:
            ran = self.ran[j]
            common = min(len(ran), len(context) - 1)
            least = len(ran) - self._kept(j)
            while common >= least and ran[least:common] != context[least:common]:
                common -= 1
            if common >= max(least, 1) and ran[:least] == context[:least]:
                return j, common
        return None

    def _kept(self, row: int) -> int:
        return self.state.kept[row] if self.state is not None else -1

    def _prefill(self, context: list[int], k: int) -> DecodeState:
        """Run all of a context but its last token."""
        state, tokens = self.model.init_state(1, k), context[:-1]
        for start in range(0, len(tokens), PASS_TOKENS):
            ids = torch.tensor([tokens[start : start + PASS_TOKENS]])
            ids = ids.to(self.model.device)
            _, state = self.model(ids, state=state, logits="last")
        return state
