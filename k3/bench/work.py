"""What a benchmark times of one model: a prompt, its first token, decoded steps."""

import statistics
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from k3 import errors
from k3.bench import limits
from k3.model import Model
from k3.model.decode_state import DecodeState
from k3.model.generate import GenerateOptions, generate

WARM_STEPS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """Tokens of the prompt, tokens before decoding, steps a round, sequences at once.

    Raises: RequestError for a number that is none of these.
    """

    tokens: int = 512
    context: int = 512
    steps: int = 16
    batches: tuple[int, ...] = (1, 8)
    rounds: int = 5
    threads: int = 1
    clock: str = "wall"

    def __post_init__(self) -> None:
        if self.clock not in limits.CLOCKS:
            raise errors.RequestError(
                f"a clock is one of {', '.join(limits.CLOCKS)}: got {self.clock}; "
                "choose one"
            )
        if self.clock == "cpu" and self.threads != 1:
            raise errors.RequestError(
                "the cpu clock adds the time of all threads: got threads "
                f"{self.threads}; time one thread, or by the wall clock"
            )
        numbers = asdict(self) | {f"batch {b}": b for b in self.batches}
        del numbers["batches"], numbers["clock"]
        for name, value in numbers.items():
            if value < 1:
                raise errors.RequestError(
                    f"a benchmark needs 1 or more of each of its counts: got {name} "
                    f"{value}; give a larger number"
                )


class Work:
    """What is timed of one model."""

    def __init__(self, model: Model, setting: Setting) -> None:
        self.model, self.setting = model, setting
        self.generator = torch.Generator().manual_seed(0)
        self.prompt = self._ids(1, setting.tokens)
        self.starts = {b: self._start(b) for b in dict.fromkeys(setting.batches)}

    def _ids(self, batch: int, tokens: int) -> Tensor:
        words = self.model.config.text.vocab_size
        return torch.randint(words, (batch, tokens), generator=self.generator)

    def _start(self, batch: int) -> tuple[Tensor, DecodeState]:
        """The next token of every row, and the state before it."""
        rows = [self._prefill(self._ids(1, self.setting.context)) for _ in range(batch)]
        token = torch.cat(
            [logits[:, -1].argmax(-1, keepdim=True) for logits, _ in rows]
        )
        return token, DecodeState.join([state for _, state in rows])

    def _prefill(self, ids: Tensor) -> tuple[Tensor, DecodeState]:
        logits, state = self.model(ids, state=self.model.init_state(1), logits="last")
        return logits, state

    def _seconds(self, run: limits.Run) -> float:
        return limits.seconds(run, self.setting.clock)

    def prefill(self) -> float:
        """Seconds for the prompt's last logits."""
        return self._seconds(lambda: self._prefill(self.prompt))

    def first_token(self) -> float:
        """Seconds from token ids to the first token, through generate."""
        ids = self.prompt[0].tolist()
        options = GenerateOptions(max_tokens=1, temperature=0.0, ignore_eos=True)
        return self._seconds(lambda: generate(self.model, [ids], options))

    def decode(self, batch: int) -> float:
        """Median seconds of a greedy step of so many sequences."""
        token, start = self.starts[batch]
        state = start.fork()

        def step() -> None:
            nonlocal token, state
            logits, state = self.model.step(token, state)
            token = logits[:, -1].argmax(-1, keepdim=True)

        for _ in range(WARM_STEPS):
            step()
        return statistics.median(self._seconds(step) for _ in range(self.setting.steps))

    def cache_bytes(self, batch: int) -> int:
        """What the caches of so many sequences hold after the context."""
        return self.starts[batch][1].nbytes
