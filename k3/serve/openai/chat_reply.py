"""The answer to a chat request: events of each sample as chunks, or as messages."""

from collections import Counter as Count
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from k3.data import xtml
from k3.data.tokenizer import Tokenizer
from k3.model.completion import Token
from k3.serve.openai.answer import Answer, Step
from k3.serve.openai.reply import Identity, Usage, finite, token_entry
from k3.serve.request import Output, Request

CHUNK = "chat.completion.chunk"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What of a chat request concerns its answer."""

    request: Request
    identity: Identity
    start_in: str
    stop: tuple[str, ...] = ()
    logprobs: bool = False
    stream: bool = False
    include_usage: bool = False

    @property
    def ignore_eos(self) -> bool:
        """Whether a sample goes on after it has closed its message."""
        return self.request.options.ignore_eos


class Sample:
    """One of the n answers, while it is read."""

    def __init__(self, index: int, asked: Asked, tokenizer: Tokenizer) -> None:
        self.index = index
        self.call_prefix = f"call_{asked.identity.id[-24:]}_{index}"
        self._asked, self._tokenizer = asked, tokenizer
        stop_ids = asked.request.options.stop_ids
        self.answer = Answer(tokenizer, asked.start_in, asked.stop, stop_ids)
        self._entries: list[dict[str, Any]] = []
        self._length = False
        self._told = False

    def take(self, output: Output) -> Iterator[dict[str, Any]]:
        """The parts of chunks that an output gives: deltas, then the finish reason."""
        for token in output.tokens:
            closed = self.answer.closed
            yield from self._parts(self.answer.push(token))
            if closed and not self._asked.ignore_eos:
                # Only the end mark could follow a closed message.
                yield from self._parts(self.answer.end("stop"))
        if output.finish:
            self._length = output.finish == "length"
            last = output.tokens[-1] if output.tokens else None
            yield from self._parts(self.answer.end(output.finish, last))
        if self.answer.ended and not self._told:
            self._told = True
            yield {"delta": {}, "finish_reason": self.reason(), **self._problems()}

    def choice(self) -> dict[str, Any]:
        """The choice of an answer that does not stream."""
        message = xtml.assemble(self.answer.events).to_dict(self.call_prefix)
        return {
            "index": self.index,
            "message": message,
            "logprobs": self._logprobs(self._entries),
            "finish_reason": self.reason(),
            **self._problems(),
        }

    def reason(self) -> str | None:
        """OpenAI's finish_reason; with ignore_eos the limit is one whatever closed."""
        if self._length and self._asked.ignore_eos:
            return "length"
        return xtml.assemble(self.answer.events).finish_reason

    def slips(self) -> list[str]:
        """The kinds of slips of the model's format."""
        found = self.answer.events
        return [event.kind for event in found if isinstance(event, xtml.Problem)]

    def _problems(self) -> dict[str, Any]:
        found = self.slips()
        return {"problems": found} if found else {}

    def _parts(self, step: Step) -> Iterator[dict[str, Any]]:
        entries = [self._entry(token) for token in step.content_tokens]
        self._entries += entries
        for event in step.events:
            delta = self._delta(event)
            if delta:
                yield {"delta": delta, "logprobs": self._logprobs(entries)}
                entries = []
        if entries:
            # Content that waits for its stop text; its tokens do not.
            yield {"delta": {"content": ""}, "logprobs": self._logprobs(entries)}

    def _delta(self, event: xtml.Event) -> dict[str, Any]:
        match event:
            case xtml.Reasoning(text):
                return {"reasoning_content": text, "reasoning": text}
            case xtml.Content(text):
                return {"content": text}
            case xtml.CallStart(index, name):
                call = {"id": f"{self.call_prefix}_{index}", "type": "function"}
                function = {"name": name, "arguments": ""}
                return {"tool_calls": [{"index": index, **call, "function": function}]}
            case xtml.CallArguments(index, text):
                function = {"arguments": text}
                return {"tool_calls": [{"index": index, "function": function}]}
        return {}

    def _logprobs(self, entries: list[dict[str, Any]]) -> dict[str, Any] | None:
        wanted = self._asked.logprobs and bool(entries or not self._asked.stream)
        return {"content": entries, "refusal": None} if wanted else None

    def _entry(self, token: Token) -> dict[str, Any]:
        if not self._asked.logprobs:
            return {}
        found = token_entry(self._tokenizer, token.id, token.logprob)
        found["top_logprobs"] = [
            token_entry(self._tokenizer, token_id, finite(logprob))
            for token_id, logprob in token.alternatives
        ]
        return found


class ChatReply:
    """The samples of one chat request."""

    def __init__(
        self, asked: Asked, tokenizer: Tokenizer, problems: Count[str]
    ) -> None:
        self._asked, self._problems = asked, problems
        self.identity = asked.identity
        self.requests: Sequence[Request] = [asked.request]
        self._usage = Usage(len(asked.request.tokens))
        self._samples = [
            Sample(index, asked, tokenizer) for index in range(asked.request.n)
        ]

    @property
    def complete(self) -> bool:
        """Whether every sample has ended."""
        return all(sample.answer.ended for sample in self._samples)

    def opening(self) -> list[dict[str, Any]]:
        """The role of each sample."""
        role = {"role": "assistant", "content": ""}
        return [self._chunk(sample, {"delta": role}) for sample in self._samples]

    def take(self, place: int, output: Output) -> list[dict[str, Any]]:
        """The chunks of an output."""
        self._usage.take(place, output)
        sample = self._samples[output.index]
        ended = sample.answer.ended
        found = [self._chunk(sample, part) for part in sample.take(output)]
        if sample.answer.ended and not ended:
            self._problems.update(sample.slips())
        return found

    def closing(self) -> list[dict[str, Any]]:
        """The usage, in a chunk without choices, if it was asked for."""
        if not self._asked.include_usage:
            return []
        return [self.identity.body(CHUNK, []) | {"usage": self.usage()}]

    def whole(self) -> dict[str, Any]:
        """The chat.completion object."""
        choices = [sample.choice() for sample in self._samples]
        body = self.identity.body("chat.completion", choices)
        return body | {"usage": self.usage()}

    def usage(self) -> dict[str, Any]:
        """Tokens of all samples."""
        answers = [sample.answer for sample in self._samples]
        return self._usage.body(
            sum(answer.num_tokens for answer in answers),
            sum(answer.num_reasoning for answer in answers),
        )

    def _chunk(self, sample: Sample, part: dict[str, Any]) -> dict[str, Any]:
        empty = {"logprobs": None, "finish_reason": None}
        choice = {"index": sample.index, **empty, **part}
        body = self.identity.body(CHUNK, [choice])
        return body | ({"usage": None} if self._asked.include_usage else {})
