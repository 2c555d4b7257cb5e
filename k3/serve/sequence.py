"""One sample of a request under way: what it has, and where it stands."""

from dataclasses import replace

from k3.model import DecodeState
from k3.model.completion import Choice, Decodes, Running, Token
from k3.serve.features import Trace
from k3.serve.keys import Chain
from k3.serve.request import Constraint, Finish, Request, Routes, derive_seed


class Sequence:
    """Tokens, random numbers, text and stops of one sample; its state may come and go.

    `chain` holds the prompt and what was generated. Without a state the sequence can
    be preempted and go on later: running `chain` again gives the state it had. While
    its prompt runs, `siblings` wait to be forked from it.
    """

    def __init__(
        self,
        request: Request,
        index: int,
        chain: Chain,
        *,
        order: tuple[int, int],
        max_tokens: int,
        eos: int | None,
        tokenizer: Decodes | None,
    ) -> None:
        seed = derive_seed(request.options.seed, index)
        options = replace(request.options, max_tokens=max_tokens, seed=seed)
        self.request, self.index, self.chain = request, index, chain
        self.order, self.most = order, len(chain) + max_tokens
        self.running = Running(options, eos, tokenizer)
        self.constraint = _own(request.constraint)
        self.siblings: list[Sequence] = []
        self.finish: Finish = ""
        self.cached_tokens = self.failures = 0
        self.alone = False
        self.reported: list[Choice | None] | None = None
        self.routes: list[Routes] = []
        self.restart()

    def restart(self) -> None:
        """Be as if nothing had been run: all but the state is kept."""
        self.state: DecodeState | None = None
        self.position = 0
        self.trace = Trace()
        self.ends: list[int] = []
        self.turns: set[int] = set()
        self.scores: list[Choice | None] = [None]

    def __len__(self) -> int:
        return len(self.chain)

    @property
    def started(self) -> bool:
        """Whether its prompt has been run once: its first token is chosen then."""
        return len(self.chain) > len(self.request.tokens)

    @property
    def scoring(self) -> bool:
        """Whether log-probabilities of the prompt are still to be taken."""
        return self.request.prompt_logprobs is not None and self.reported is None

    def take_routes(self) -> tuple[Routes, ...]:
        """Experts of the tokens that were run since the last time."""
        found, self.routes = tuple(self.routes), []
        return found

    def take(self, token_id: int, chosen: Choice) -> Token:
        """Append a chosen token; `finish` is set if it is the last."""
        done = False
        if self.constraint is not None:
            self.constraint.accept(token_id)
            done = self.constraint.done()
        token = self.running.take(token_id, chosen, last=done)
        self.chain.extend([token_id], generated=True)
        if token.finish:
            self.finish = "stop" if token.finish == "stop" else "length"
        return token


def _own(constraint: Constraint | None) -> Constraint | None:
    return None if constraint is None else constraint.fork()
