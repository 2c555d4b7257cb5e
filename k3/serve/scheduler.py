"""Who runs in a step: admission by class, tokens of prompts, who must wait again."""

from bisect import insort
from collections.abc import Callable, Iterable

from k3.serve.batch import Batch
from k3.serve.sequence import Sequence

HEADROOM_TOKENS = 64
"""Room to grow that an admission leaves, so that it is not taken back at once."""


class Lane:
    """The sequences of one class, in the order of their arrival, and its budgets.

    `bytes_at(tokens)` is what one sequence's state takes. A batch pads its rows to
    the longest, so `count` sequences need count times the bytes of the longest.
    """

    def __init__(
        self,
        *,
        max_seqs: int,
        max_tokens: int,
        max_bytes: int,
        bytes_at: Callable[[int], int],
        row_tokens: int = 1,
    ) -> None:
        self.max_seqs, self.max_tokens = max_seqs, max_tokens
        self.max_bytes, self.bytes_at = max_bytes, bytes_at
        self.row_tokens = row_tokens
        self.waiting: list[Sequence] = []
        self.prefilling: list[Sequence] = []
        self.batch = Batch()

    @property
    def running(self) -> list[Sequence]:
        """Those that decode, in the order of their rows."""
        return self.batch.rows

    @property
    def active(self) -> list[Sequence]:
        """Those that have a state, or are about to get one."""
        return [*self.prefilling, *self.running]

    def need(self, sequences: Iterable[Sequence], more: int) -> int:
        """Bytes of these sequences' states once each has grown by `more` tokens."""
        lengths = [min(len(s) + more, s.most) for s in sequences]
        return len(lengths) * self.bytes_at(max(lengths, default=0))

    def fits(self, sequences: Iterable[Sequence], more: int) -> bool:
        """Whether they may be active together: one alone always may."""
        them = list(sequences)
        few = len(them) <= self.max_seqs
        return few and (len(them) < 2 or self.need(them, more) <= self.max_bytes)

    def queue(self, sequence: Sequence) -> None:
        """Wait, behind all that came earlier."""
        insort(self.waiting, sequence, key=_order)

    def preempt(self) -> list[Sequence]:
        """Send back the last to have come until the others fit; returns who went."""
        gone: list[Sequence] = []
        while len(self.active) > 1 and not self.fits(self.active, self.row_tokens):
            last = max(self.active, key=_order)
            self.send_back(last)
            gone.append(last)
        return gone

    def admit(self) -> None:
        """Let the first of the queue in, as long as there is room for it."""
        while self.waiting:
            head = self.waiting[0]
            if not self.fits([*self.active, head], HEADROOM_TOKENS):
                return
            insort(self.prefilling, self.waiting.pop(0), key=_order)

    def prompt_tokens(self) -> int:
        """Tokens of a step that are left to prompts."""
        return self.max_tokens - len(self.running) * self.row_tokens

    def send_back(self, sequence: Sequence) -> None:
        """Give up a sequence's state: it waits in its old place to run again."""
        self.remove(sequence)
        self.queue(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out, wherever it is."""
        for place in (self.waiting, self.prefilling):
            if sequence in place:
                place.remove(sequence)
        self.batch.drop(sequence)
        sequence.restart()


def _order(sequence: Sequence) -> tuple[int, int]:
    return sequence.order
