"""What `k3 eval` runs: the text and tasks here, or tasks over a server."""

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k3.cli import loading, output, settings
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.eval import Figure, Play, Protocol, Result
    from k3.eval.prices import Price
    from k3.post.speaker import Speaker
    from k3.serve.worker import Worker

# Of k3.eval.PROTOCOLS those whose questions are conversations without pictures.
TALKED = ("tools", "chat")
# Conditions of environments alone.
PLAYED = ("turns", "context")
KEY_NAMES = ("K3_API_KEY", "OPENAI_API_KEY")
NOTE_SECONDS = 20.0

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """How the tasks are to be run: `given` are conditions, `out` keeps answers."""

    count: int | None
    given: Mapping[str, Any]
    out: Path | None
    price: "Price | None"


class Local:
    """A model of this process; its engine starts with the first environment."""

    def __init__(self, loaded: loading.Loaded) -> None:
        self.loaded, self.name = loaded, loaded.path.name
        self.facts = {"model": str(loaded.path), "weights": _stamp(loaded.path)}
        self._worker: Worker | None = None

    def result(self, protocol: "Protocol | Play", out: Path | None) -> "Result":
        """All attempts of a protocol."""
        from k3 import eval as evaluation

        said = {"transcript": out, "facts": self.facts, "report": progress()}
        if isinstance(protocol, evaluation.Play):
            return evaluation.conduct(self._speaker(), protocol, **said)
        tokenizer = self.loaded.needed_tokenizer()
        return evaluation.run(self.loaded.model, tokenizer, protocol, **said)

    def text(self, count: int | None) -> "Figure":
        """Bits per byte of the held-out text of the standard library."""
        from k3 import eval as evaluation
        from k3.data import corpora

        documents = corpora.stdlib().heldout[:count]
        tokenizer = self.loaded.needed_tokenizer()
        return evaluation.bits_per_byte(self.loaded.model, tokenizer, documents)

    def close(self) -> None:
        """Stop the engine."""
        if self._worker is not None:
            self._worker.close()

    def _speaker(self) -> "Speaker":
        from k3.post.speaker_engine import EngineSpeaker
        from k3.serve import CacheOptions, Engine, EngineOptions, Worker

        tokenizer = self.loaded.needed_tokenizer()
        if self._worker is None:
            options = EngineOptions(cache=CacheOptions())
            engine = Engine(self.loaded.model, options, tokenizer=tokenizer)
            self._worker = Worker(engine)
        return EngineSpeaker(self._worker, tokenizer, self.loaded.model.config)


class Remote:
    """A model behind an OpenAI-compatible server."""

    def __init__(self, url: str) -> None:
        from k3.post.speaker_server import ServerSpeaker

        self._server = ServerSpeaker(url, key=key())
        self.name = self._server.model
        self.facts = {"model": self.name}

    def result(self, protocol: "Protocol | Play", out: Path | None) -> "Result":
        """All attempts of a protocol."""
        from k3 import eval as evaluation

        return evaluation.conduct(
            self._server,
            protocol,
            transcript=out,
            facts=self.facts,
            report=progress(),
        )

    def text(self, count: int | None) -> "Figure":
        """Refused: bits per byte need the probabilities of every token."""
        raise RequestError(
            "text is measured on a model here: give its folder, or ask a server with "
            "lm-eval (docs/evaluation.md)"
        )

    def close(self) -> None:
        """Close the connections."""
        self._server.close()


Subject = Local | Remote


def key() -> str:
    """The key that a server is shown, from the environment."""
    return next(filter(None, map(os.environ.get, KEY_NAMES)), "")


def rows(name: str, subject: Subject, wish: Wish) -> list[Row]:
    """The figures of a task as plain values."""
    if name == "text":
        return [_row(name, subject.text(wish.count), stands=False)]
    protocol = wished(name, wish)
    out = None if wish.out is None else wish.out / f"{name}.jsonl"
    found = subject.result(protocol, out)
    figures = list(found.figures)
    if wish.price is not None:
        from k3.eval import prices

        figures.append(prices.cost(found.records, wish.price))
    return [_row(name, f, stands=f is found.score) for f in figures]


def wished(name: str, wish: Wish) -> "Protocol | Play":
    """The protocol of a task under the conditions that were given."""
    from k3.eval import protocol

    found = protocol.named(name)
    if wish.count is not None:
        found = replace(found, count=wish.count)
    given = dict(wish.given)
    if not isinstance(found, protocol.Play):
        given = {key: given[key] for key in given if key not in PLAYED}
    return protocol.changed(found, given)


def check_conditions(names: Iterable[str], wish: Wish) -> None:
    """Refuse conditions that no task has, or a task cannot take."""
    from k3.eval import protocol

    found = [wished(name, wish) for name in names if name != "text"]
    alone = [key for key in wish.given if key in PLAYED]
    if alone and not any(isinstance(each, protocol.Play) for each in found):
        raise RequestError(
            f"--set {alone[0]} is of environments: none of the tasks is one; leave it "
            "out"
        )


def check_names(names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a task that is neither known nor an environment."""
    for name in names:
        if name not in known:
            from k3.envs import registry

            first = name.partition("@")[0]
            settings.one_of("TASK", first, (*known, *registry.names()))


def progress() -> Any:
    """A report that says now and then how far a run has come."""
    last = [time.monotonic()]

    def report(done: int, count: int) -> None:
        if time.monotonic() - last[0] > NOTE_SECONDS:
            last[0] = time.monotonic()
            with suppress(OSError):
                output.note(f"k3: {done} of {count} answers")

    return report


def _stamp(path: Path) -> list[list[Any]]:
    """Names, sizes and times of the weights: whether a transcript is of these."""
    files = sorted(path.glob("*.safetensors"))
    return [[f.name, f.stat().st_size, f.stat().st_mtime_ns] for f in files]


def _row(task: str, figure: "Figure", *, stands: bool) -> Row:
    """A figure as plain values; `stands` for those that --at-least looks at."""
    return {
        "task": task,
        "figure": figure.name,
        "count": figure.count,
        "value": figure.value,
        "low": figure.low,
        "high": figure.high,
        "stands": stands,
    }
