"""Protocols: which questions are asked, how, and who judges the answers. Data only."""

from dataclasses import dataclass

from k3.errors import RequestError


@dataclass(frozen=True, kw_only=True, slots=True)
class Protocol:
    """`count` held-out questions of a task, `samples` answers to each.

    At temperature 0 the most likely token is taken, so one answer says all.
    `score` is the figure that stands for the protocol.
    """

    name: str
    task: str
    judge: str = "exact"
    score: str = "right"
    count: int = 200
    samples: int = 1
    temperature: float = 0.0
    max_tokens: int = 32
    batch: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        small = [
            f"{key} must be at least 1: got {getattr(self, key)}"
            for key in ("count", "samples", "max_tokens", "batch")
            if getattr(self, key) < 1
        ]
        if small:
            raise RequestError("; ".join(small))
        if self.samples > 1 and self.temperature == 0:
            raise RequestError(
                "several samples need a temperature above 0: got samples="
                f"{self.samples} at temperature 0, which are all the same; raise it"
            )


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol(name="digits", task="digits", count=374),
        Protocol(name="recall", task="recall", count=400, max_tokens=1),
        Protocol(
            name="tools", task="tools", judge="call", score="valid", max_tokens=128
        ),
        Protocol(name="chat", task="chat", judge="words"),
    )
}


def named(name: str) -> Protocol:
    """The protocol of this name. Raises: RequestError."""
    if name not in PROTOCOLS:
        raise RequestError(
            f"a protocol is one of {', '.join(PROTOCOLS)}: got {name!r}; choose one"
        )
    return PROTOCOLS[name]
