"""The answer to a completions request: texts of each sample, echoed or not."""

from collections.abc import Sequence
from typing import Any

from k3.data.tokenizer import Tokenizer
from k3.model.completion import Choice
from k3.serve.openai.reply import Identity, Usage, finite
from k3.serve.request import Output, Request

KIND = "text_completion"


class Logprobs:
    """The four lists of OpenAI's completions, token by token."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = tokenizer.stream()
        self._offset = 0
        self._sent = 0
        names = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
        self.body: dict[str, list[Any]] = {name: [] for name in names}

    def add(self, token_id: int, choice: Choice | None) -> None:
        """One token; the first of a prompt has no choice."""
        text = self._tokenizer.decode([token_id])
        self.body["tokens"].append(text)
        self.body["text_offset"].append(self._offset)
        self._offset += len(self._decoder.push(token_id))
        if choice is None:
            self.body["token_logprobs"].append(None)
            self.body["top_logprobs"].append(None)
            return
        self.body["token_logprobs"].append(finite(choice.logprob))
        self.body["top_logprobs"].append(self._top(text, choice))

    def news(self) -> dict[str, list[Any]]:
        """What came since the last call."""
        since, self._sent = self._sent, len(self.body["tokens"])
        return {name: values[since:] for name, values in self.body.items()}

    def _top(self, text: str, choice: Choice) -> dict[str, float]:
        found: dict[str, float] = {}
        for token_id, logprob in choice.alternatives:
            # Of tokens with one text the likelier stands for it.
            found.setdefault(self._tokenizer.decode([token_id]), finite(logprob))
        found.setdefault(text, finite(choice.logprob))
        return found


class Sample:
    """One sample of one prompt, while it is read."""

    def __init__(self, request: Request, tokenizer: Tokenizer, *, echo: bool) -> None:
        self._request, self._tokenizer, self._echo = request, tokenizer, echo
        self.logprobs = Logprobs(tokenizer)
        self.text, self.finish = "", ""
        self.ids: list[int] = []
        self._began = False

    def take(self, output: Output) -> str:
        """The text that an output adds, the prompt first."""
        text = "" if self._began else self._prompt(output)
        self._began = True
        for token in output.tokens:
            self.ids.append(token.id)
            text += token.text
            self.logprobs.add(token.id, Choice(token.logprob, token.alternatives))
        self.text += text
        self.finish = output.finish or self.finish
        return text

    def _prompt(self, output: Output) -> str:
        if not self._echo:
            return ""
        ids = self._request.tokens
        for token_id, choice in zip(
            ids, output.prompt_logprobs or [None] * len(ids), strict=True
        ):
            self.logprobs.add(token_id, choice)
        return self._tokenizer.decode(ids)


class CompletionsReply:
    """The samples of every prompt; choice i is sample i % n of prompt i // n."""

    def __init__(
        self,
        requests: Sequence[Request],
        tokenizer: Tokenizer,
        identity: Identity,
        *,
        echo: bool,
        logprobs: bool,
        token_ids: bool,
        include_usage: bool,
    ) -> None:
        self.requests, self.identity = requests, identity
        self._logprobs, self._include_usage = logprobs, include_usage
        self._token_ids = token_ids
        self._samples = [
            [Sample(request, tokenizer, echo=echo) for _ in range(request.n)]
            for request in requests
        ]
        self._usage = Usage(sum(len(request.tokens) for request in requests))

    @property
    def complete(self) -> bool:
        """Whether every sample has ended."""
        return all(sample.finish for row in self._samples for sample in row)

    def opening(self) -> list[dict[str, Any]]:
        """Nothing: there are no roles."""
        return []

    def take(self, place: int, output: Output) -> list[dict[str, Any]]:
        """The chunk of an output."""
        self._usage.take(place, output)
        sample = self._samples[place][output.index]
        text = sample.take(output)
        choice = {
            "index": place * self.requests[place].n + output.index,
            "text": text,
            "logprobs": sample.logprobs.news() if self._logprobs else None,
            "finish_reason": output.finish or None,
        } | self._ids([token.id for token in output.tokens])
        body = self.identity.body(KIND, [choice])
        return [body | ({"usage": None} if self._include_usage else {})]

    def closing(self) -> list[dict[str, Any]]:
        """The usage, in a chunk without choices, if it was asked for."""
        if not self._include_usage:
            return []
        return [self.identity.body(KIND, []) | {"usage": self.usage()}]

    def whole(self) -> dict[str, Any]:
        """The text_completion object."""
        samples = [sample for row in self._samples for sample in row]
        choices = [
            {
                "index": index,
                "text": sample.text,
                "logprobs": sample.logprobs.body if self._logprobs else None,
                "finish_reason": sample.finish or None,
            }
            | self._ids(sample.ids)
            for index, sample in enumerate(samples)
        ]
        return self.identity.body(KIND, choices) | {"usage": self.usage()}

    def _ids(self, ids: list[int]) -> dict[str, Any]:
        """The ids that go with a choice, if they were asked for."""
        return {"token_ids": ids} if self._token_ids else {}

    def usage(self) -> dict[str, Any]:
        """Tokens of all samples; each prompt counts once."""
        samples = [sample for row in self._samples for sample in row]
        return self._usage.body(sum(len(sample.ids) for sample in samples))
