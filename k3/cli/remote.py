"""`k3 chat URL`: a conversation with any OpenAI-compatible server."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from k3.cli import output
from k3.errors import RequestError

if TYPE_CHECKING:
    import httpx

GREETING = """\
{model} at {url}: type a line, read the answer; thinking is dimmed.
/reset forgets the conversation, /quit or Ctrl-D ends."""
# Fields of the request by the option that sets them; only what was typed is sent.
FIELDS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "seed": "seed",
    "stop": "stop",
    "stop_ids": "stop_token_ids",
    "ignore_eos": "ignore_eos",
}


def is_url(text: str) -> bool:
    """Whether MODEL is the address of a server."""
    return text.startswith(("http://", "https://"))


@dataclass(slots=True)
class Answer:
    """A message as it comes: what was thought, said and called, and what it cost."""

    content: str = ""
    reasoning: str = ""
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    finish: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def message(self) -> dict[str, Any]:
        """The whole assistant message, as the next turn must have it."""
        found: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning:
            found["reasoning_content"] = self.reasoning
        if self.calls:
            found["tool_calls"] = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"]},
                }
                for _, call in sorted(self.calls.items())
            ]
        return found

    def cost(self) -> str:
        """Tokens, their rate, and how many of the prompt were cached."""
        count = int(self.usage.get("completion_tokens") or 0)
        rate = count / self.seconds if self.seconds > 0 else 0.0
        details = self.usage.get("prompt_tokens_details") or {}
        cached = int(details.get("cached_tokens") or 0)
        prompt = int(self.usage.get("prompt_tokens") or 0)
        return (
            f"k3: {count} tokens, {rate:.1f} tok/s, {cached} of {prompt} prompt tokens "
            f"cached, ended by {self.finish or 'nothing'}"
        )


class Server:
    """An OpenAI-compatible server: its model's name, and answers as they stream."""

    def __init__(self, url: str) -> None:
        import httpx

        base = url.rstrip("/").removesuffix("/chat/completions")
        self.url = base if base.endswith("/v1") else f"{base}/v1"
        names = ("K3_API_KEY", "OPENAI_API_KEY")
        key = next((os.environ[name] for name in names if os.environ.get(name)), "")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self.client = httpx.Client(headers=headers, timeout=httpx.Timeout(600.0))
        self._failures = (httpx.HTTPError, httpx.InvalidURL)

    def model(self) -> str:
        """The first model that the server lists."""
        found = self._ask(lambda: self.client.get(f"{self.url}/models"))
        try:
            return str(found.json()["data"][0]["id"])
        except (ValueError, LookupError, TypeError):
            raise RequestError(
                f"{self.url}/models must list a model: got {found.text[:80]!r}; is it "
                "an OpenAI-compatible server?"
            ) from None

    def chunks(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The chunks of one answer.

        Raises: RequestError for what the server refuses, or a connection that breaks.
        """
        try:
            with self.client.stream(
                "POST", f"{self.url}/chat/completions", json=dict(body)
            ) as response:
                if response.status_code != 200:
                    response.read()
                    raise self._refused(response)
                for line in response.iter_lines():
                    if line.startswith("data:") and line[5:].strip() != "[DONE]":
                        yield self._chunk(line[5:])
        except self._failures as error:
            raise self._broken(error) from error

    def _chunk(self, text: str) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise RequestError(
                f"{self.url} must stream JSON objects: got {text[:80]!r}"
            )
        if "error" in found:
            raise RequestError(f"{self.url} broke off: {_message(found)}")
        return found

    def _ask(self, send: "Callable[[], httpx.Response]") -> "httpx.Response":
        try:
            found = send()
        except self._failures as error:
            raise self._broken(error) from error
        if found.status_code != 200:
            raise self._refused(found)
        return found

    def _broken(self, error: Exception) -> RequestError:
        words = str(error) or type(error).__name__
        return RequestError(f"{self.url} must answer: {words}; is the server running?")

    def _refused(self, response: "httpx.Response") -> RequestError:
        try:
            words = _message(response.json())
        except ValueError:
            words = response.text[:200]
        hint = "; set K3_API_KEY" if response.status_code == 401 else ""
        return RequestError(f"{self.url} answers {response.status_code}: {words}{hint}")


def chat(
    url: str,
    asked: Mapping[str, Any],
    read_line: Callable[[], str | None],
    *,
    as_json: bool,
) -> None:
    """Lines in, answers out, until the lines end."""
    server = Server(url)
    model = server.model()
    output.note(GREETING.format(model=model, url=server.url))
    history: list[dict[str, Any]] = []
    while (line := read_line()) is not None:
        if line == "/quit":
            return
        if line == "/reset":
            history = []
        elif line:
            history = _turn(server, model, history, line, asked, as_json=as_json)


def _turn(
    server: Server,
    model: str,
    history: list[dict[str, Any]],
    line: str,
    asked: Mapping[str, Any],
    *,
    as_json: bool,
) -> list[dict[str, Any]]:
    """The history after an answer; a person at a terminal may go on after a refusal."""
    said = [*history, {"role": "user", "content": line}]
    body = {
        "model": model,
        "messages": said,
        "stream": True,
        "stream_options": {"include_usage": True},
        **{FIELDS[name]: value for name, value in asked.items() if name in FIELDS},
    }
    try:
        answer = read(server.chunks(body), shown=not as_json)
    except RequestError as error:
        if not sys.stdin.isatty():
            raise
        output.note(f"k3: {error}")
        return history
    if as_json:
        message = answer.message()
        output.json_line({**message, "finish": answer.finish, "usage": answer.usage})
    output.note(answer.cost())
    return [*said, answer.message()]


def read(chunks: Iterator[dict[str, Any]], *, shown: bool) -> Answer:
    """The answer that chunks add up to, printed as it comes."""
    answer, began = Answer(), time.perf_counter()
    for chunk in chunks:
        answer.usage = chunk.get("usage") or answer.usage
        for choice in chunk.get("choices") or ():
            if choice.get("index", 0) == 0:
                _take(answer, choice, shown)
    answer.seconds = time.perf_counter() - began
    if shown:
        for call in answer.calls.values():
            print(f"{call['name']}({call['arguments']})")
        print(flush=True)
    return answer


def _take(answer: Answer, choice: Mapping[str, Any], shown: bool) -> None:
    delta = choice.get("delta") or {}
    thought = delta.get("reasoning_content") or delta.get("reasoning") or ""
    said = delta.get("content") or ""
    if shown and thought:
        output.echo(thought)
    if shown and said:
        first = not answer.content and answer.reasoning and sys.stdout.isatty()
        print(("\n" if first else "") + said, end="", flush=True)
    answer.reasoning += thought
    answer.content += said
    for call in delta.get("tool_calls") or ():
        empty = {"id": "", "name": "", "arguments": ""}
        known = answer.calls.setdefault(call.get("index", 0), empty)
        known["id"] = call.get("id") or known["id"]
        function = call.get("function") or {}
        known["name"] += function.get("name") or ""
        known["arguments"] += function.get("arguments") or ""
    answer.finish = choice.get("finish_reason") or answer.finish


def _message(body: Any) -> str:
    error = body.get("error") if isinstance(body, dict) else None
    words = error.get("message") if isinstance(error, dict) else error
    return str(words or body)[:300]
