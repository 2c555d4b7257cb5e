"""A DecodeState as transformers' Cache: generation and beam search carry it along."""

from typing import Any

import torch
from transformers import Cache

from k3.errors import RequestError
from k3.model import DecodeState, Model


class StateCache(Cache):
    """What the sequences of a batch carry; empty until the first pass.

    `seen` counts columns of input_ids, padding included, as transformers counts.
    A pass replaces `state`: to branch, `fork()` first.
    """

    def __init__(self, state: DecodeState | None = None) -> None:
        super().__init__(layers=[])
        self.state = state
        self.seen = max(state.lens, default=0) if state is not None else 0

    def __repr__(self) -> str:
        rows = self.state.batch if self.state is not None else 0
        return f"StateCache({rows} sequences, {self.seen} columns)"

    def __len__(self) -> int:
        return len(self.state.caches) if self.state is not None else 0

    def fork(self) -> "StateCache":
        """Return an independent copy."""
        copied = StateCache(self.state.fork() if self.state is not None else None)
        copied.seen = self.seen
        return copied

    def __copy__(self) -> "StateCache":
        """Return a fork: two handles on one state would spend each other."""
        return self.fork()

    def __deepcopy__(self, memo: object) -> "StateCache":
        """Return a fork."""
        return self.fork()

    def begin(self, model: Model, batch: int) -> DecodeState:
        """Return the state that a pass over `batch` sequences goes on from."""
        return self.state if self.state is not None else model.init_state(batch)

    def moved(self, state: DecodeState, columns: int) -> None:
        """Take the state after a pass over so many columns."""
        self.state, self.seen = state, self.seen + columns

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the columns seen so far."""
        return self.seen

    def get_max_length(self, layer_idx: int | None = None) -> int:
        """Return -1: there is no maximum."""
        return -1

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """Return (columns with the new ones, offset 0)."""
        return self.seen + query_length, 0

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Keep the rows that beam search goes on with."""
        self.batch_select_indices(beam_idx)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep some rows, in any order, also several times."""
        if self.state is not None:
            self.state = self.state.select([int(i) for i in indices])

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every row."""
        rows = range(self.state.batch if self.state is not None else 0)
        self.batch_select_indices(
            torch.tensor([r for r in rows for _ in range(repeats)])
        )

    def reset(self) -> None:
        """Forget everything."""
        self.state, self.seen = None, 0

    def crop(self, tokens_to_remove: int) -> None:
        """Take tokens back, if their inputs were kept (`init_state(keep_inputs=)`)."""
        if self.state is not None and tokens_to_remove:
            n = abs(tokens_to_remove)
            self.state, self.seen = self.state.rewind(n), self.seen - n

    def update(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: keys and values of single layers are not what K3 carries."""
        raise RequestError(
            "a StateCache holds a DecodeState: it takes no keys and values of a layer; "
            "pass it to the model as cache="
        )

    @property
    def batch_size(self) -> int:
        """Return the number of sequences, -1 before the first pass."""
        return self.state.batch if self.state is not None else -1

    @property
    def is_compileable(self) -> bool:
        """Return False: rows grow."""
        return False

    @property
    def is_initialized(self) -> bool:
        """Return whether a pass has been made."""
        return self.state is not None

    @property
    def is_croppable(self) -> bool:
        """Return whether tokens can be taken back."""
        return self.state is not None and self.state.keep_inputs > 0

    @property
    def is_linear(self) -> list[bool]:
        """Return one False: the number of columns seen counts when a cache returns."""
        return [False]

    @property
    def is_sliding(self) -> list[bool]:
        """Return one False."""
        return [False]
