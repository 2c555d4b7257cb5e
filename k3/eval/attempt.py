"""One attempt at one instance: its seed, its effort, the head of its transcript."""

from dataclasses import asdict, replace
from typing import Any

from k3.data.tasks import Dialogue
from k3.data.xtml import RenderOptions
from k3.eval.protocol import NO_THINKING, Conditions
from k3.eval.transcript import Asked, Record

SEED_STEP = 1_000_003


def header(protocol: Conditions, facts: dict[str, Any] | None) -> Record:
    """The first line of a transcript."""
    return {"protocol": asdict(protocol), "facts": facts or {}}


def seed(protocol: Conditions, asked: Asked) -> int:
    """The seed of a sample of an instance."""
    return protocol.seed + SEED_STEP * asked[0] + asked[1]


def dialogue(item: Dialogue, wanted: str) -> Dialogue:
    """The dialogue under the effort of a protocol; empty leaves it its own."""
    if not wanted:
        return item
    return replace(item, effort=None if wanted == NO_THINKING else wanted)


def effort(own: RenderOptions, wanted: str) -> RenderOptions:
    """The options of an environment under the effort of a protocol."""
    if not wanted:
        return own
    if wanted == NO_THINKING:
        return replace(own, thinking=False, thinking_effort=None)
    return replace(own, thinking=True, thinking_effort=wanted)
