"""One answer being read: tokens in, events out, the same for streams and wholes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from k3.data import xtml
from k3.data.tokenizer import Tokenizer
from k3.data.xtml.segments import END
from k3.model.completion import Token
from k3.model.stop import StopText


@dataclass(slots=True)
class Step:
    """What one token gave: events, and the tokens that have become content."""

    events: list[xtml.Event]
    content_tokens: list[Token]


class Answer:
    """Token by token: channels, calls, stop texts, counts.

    Stop texts act on content alone, never on thinking or calls. After the end nothing
    is read, so a sample that ended early ignores what its engine still sends.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        start_in: str,
        stop: tuple[str, ...] = (),
        stop_ids: Iterable[int] = (),
    ) -> None:
        self._pieces = xtml.Pieces(tokenizer)
        self._parser = xtml.Parser("think" if start_in == "think" else "response")
        self._stop = StopText(stop)
        self._stop_ids = frozenset(stop_ids)
        self._message_end = tokenizer.special_id(END)
        self._undecided: list[Token] = []
        self.events: list[xtml.Event] = []
        self.num_tokens = 0
        self.num_reasoning = 0
        self.ended = False

    @property
    def closed(self) -> bool:
        """The model has closed its message; what follows would not be read."""
        return self._parser.done

    def push(self, token: Token) -> Step:
        """The events of the next token; a stop id is counted but not read."""
        if self.ended:
            return Step([], [])
        self.num_tokens += 1
        self.num_reasoning += self._parser.channel == "think"
        if token.id in self._stop_ids and token.id != self._message_end:
            return Step([], [])
        self._undecided.append(token)
        step = self._take(self._pieces.push(token.id))
        if self._stop.found:
            step.events += self._finish("stop_text")
        self.events += step.events
        return step

    def end(self, finish: str, last: Token | None = None) -> Step:
        """The last events; `finish` and the last token are the engine's."""
        if self.ended:
            return Step([], [])
        step = self._take(self._pieces.flush())
        if not self._stop.found:
            step.events += self._flush()
        step.events += self._finish(self._reason(finish, last))
        self.events += step.events
        return step

    def _reason(self, finish: str, last: Token | None) -> str:
        if finish != "stop":
            return "length" if finish == "length" else "abort"
        asked = last is not None and last.id in self._stop_ids
        if self._stop.found or (asked and last and last.id != self._message_end):
            return "stop_text"
        return "stop"

    def _finish(self, reason: str) -> list[xtml.Event]:
        self.ended = True
        match reason:
            case "stop_text" | "length" | "abort":
                return self._parser.finish(reason)
        return self._parser.finish("stop")

    def _take(self, pieces: list[tuple[str, bool]]) -> Step:
        """What the pieces add; tokens of other text than content are dropped."""
        found = [event for piece in pieces for event in self._parser.push(piece)]
        became: list[Token] = []
        if any(isinstance(event, xtml.Content) for event in found):
            became, self._undecided = self._undecided, []
        elif pieces:
            self._undecided = []
        return Step(list(self._until_stop(found)), became)

    def _until_stop(self, events: Iterable[xtml.Event]) -> Iterator[xtml.Event]:
        for event in events:
            if self._stop.found:
                return
            if isinstance(event, xtml.Content):
                yield from _content(self._stop.push(event.text))
                continue
            if not isinstance(event, xtml.Problem):
                yield from self._flush()
            yield event

    def _flush(self) -> Iterator[xtml.Event]:
        yield from _content(self._stop.flush())


def _content(text: str) -> Iterator[xtml.Event]:
    if text:
        yield xtml.Content(text)
