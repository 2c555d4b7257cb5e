"""Which of a task's few possible questions are kept aside: a hash of the name."""

import hashlib

HELDOUT_PERCENT = 20


def is_heldout(name: str, percent: int = HELDOUT_PERCENT) -> bool:
    """Whether the question of this name is never trained on."""
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big") % 100 < percent
