"""Which replica a request goes to: its conversation's own, unless that one is busy.

Consistent hashing with bounded loads (Mirrokni, Thorup, Zadimoghaddam 2018): a key has
an order of replicas, its primary first, its secondary second; a request takes the first
that is up and below its share of what is in flight.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from k3.errors import RequestError

SESSION_HEADER = "x-session-id"
PROMPT_CHARACTERS = 1024
"""How much of a plain prompt is its key: what follows differs from turn to turn."""

_HEAD_FIELDS = ("model", "tools")


def prefix_key(body: bytes, session: str = "") -> str:
    """The key of a request: equal for all turns of a conversation.

    The session that the client names, or the messages up to the first user's with the
    declared tools, or the start of a prompt. A body that is no JSON object is its own
    key; the replica answers for it.
    """
    if session:
        return _digest(["session", session])
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return _digest(["body", body.decode("utf-8", "replace")])
    if not isinstance(fields, dict):
        return _digest(["body", fields])
    if fields.get("prompt_cache_key"):
        return _digest(["session", fields["prompt_cache_key"]])
    head = [fields.get(name) for name in _HEAD_FIELDS]
    if isinstance(fields.get("messages"), list):
        return _digest([*head, list(_head(fields["messages"]))])
    return _digest([*head, _start(fields.get("prompt"))])


def _head(messages: Sequence[Any]) -> Iterator[Any]:
    """Yield the messages up to the first that a user wrote."""
    for message in messages:
        yield message
        if isinstance(message, Mapping) and message.get("role") == "user":
            return


def _start(prompt: Any) -> Any:
    """Return what stands for a prompt: text, ids, or the first of several."""
    if isinstance(prompt, str):
        return prompt[:PROMPT_CHARACTERS]
    if isinstance(prompt, list):
        first = prompt[0] if prompt else None
        return _start(first) if isinstance(first, str | list) else prompt[:256]
    return prompt


def _digest(parts: Any) -> str:
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _hash_ring() -> Any:
    try:
        from uhashring import HashRing
    except ImportError:
        raise RequestError(
            "routing needs the serve extra: pip install 'k3[serve]'"
        ) from None
    return HashRing


class Ring:
    """The order of replicas for a key; stable when replicas come and go."""

    def __init__(self, names: Sequence[str]) -> None:
        """Place the replicas; raise RequestError for none, or a name given twice."""
        if not names or len(set(names)) != len(names):
            raise RequestError(
                f"a ring needs at least one replica, each named once: got {list(names)}"
            )
        self._ring = _hash_ring()(nodes=list(names), hash_fn="ketama")
        self._size = len(names)

    def order(self, key: str) -> list[str]:
        """All replicas, the key's primary first, its secondary second."""
        found = self._ring.range(key, size=self._size)
        return [node["nodename"] for node in found]


def capacity(in_flight: int, replicas: int, factor: float = 1.25) -> int:
    """How many requests one replica may have, the new one among them.

    `factor` times the mean, rounded up: at least one replica is always below it.
    """
    return math.ceil(factor * (in_flight + 1) / max(replicas, 1))


def choose(
    order: Sequence[str], loads: Mapping[str, int], factor: float = 1.25
) -> list[str]:
    """The replicas to try, best first: `loads` has those that are up, in flight each.

    Those below their share come first, in the key's order; then the others, which
    are there to fail over to.
    """
    up = [name for name in order if name in loads]
    share = capacity(sum(loads[name] for name in up), len(up), factor)
    return sorted(up, key=lambda name: loads[name] >= share)
