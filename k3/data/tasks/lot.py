"""A lot: what one draw of a task depends on, and which questions its split keeps."""

import hashlib
import random
from dataclasses import dataclass
from typing import Literal

Split = Literal["train", "heldout"]
SPLITS: tuple[Split, ...] = ("train", "heldout")
HELDOUT_PERCENT = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Lot:
    """An index, a split, and random numbers that depend on both and on the domain."""

    index: int
    split: Split
    rng: random.Random

    @classmethod
    def of(cls, domain: str, split: Split, index: int) -> "Lot":
        """The lot of this index; the same three give the same random numbers."""
        rng = random.Random(f"{domain}/{split}/{index}")
        return cls(index=index, split=split, rng=rng)

    @property
    def heldout(self) -> bool:
        """Whether it is drawn to measure, not to train."""
        return self.split == "heldout"

    def keeps(self, name: str) -> bool:
        """Whether a question of this name belongs to the split of this lot."""
        return is_heldout(name) == self.heldout


def is_heldout(name: str, percent: int = HELDOUT_PERCENT) -> bool:
    """Whether the question of this name is never trained on: a hash of the name."""
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big") % 100 < percent
