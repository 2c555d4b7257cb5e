"""An OpenAI-compatible server as a speaker: chat completions over HTTP."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from k3.data.xtml import Message, Problem, RenderOptions, ToolCall
from k3.envs.environment import Chat
from k3.errors import RequestError
from k3.post.speaker import ContextFull, Sampling, Spoken, Usage

if TYPE_CHECKING:
    import httpx

TRIES = 5
BUSY = (429, 502, 503, 504)
LONGEST_WAIT_SECONDS = 30.0
_FULL = ("context_length_exceeded", "context length", "context window")


class ServerSpeaker:
    """A `Speaker` over `POST /v1/chat/completions`.

    A server that is busy or away is asked again, a few times and ever later. `key` is
    sent as a bearer token.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str = "",
        key: str = "",
        timeout_seconds: float = 600.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        import httpx

        base = url.rstrip("/").removesuffix("/chat/completions").removesuffix("/v1")
        self.url = base
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(headers=headers, timeout=timeout_seconds)
        self._failures = (httpx.HTTPError, httpx.InvalidURL)
        self._sleep = sleep
        self.model = model or self._listed()

    def answer(
        self, messages: Sequence[Chat], wanted: RenderOptions, sampling: Sampling
    ) -> Spoken:
        """The answer to a conversation. Raises: ContextFull, RequestError."""
        rendered = {"model": self.model, "messages": list(messages), **asked(wanted)}
        if sampling.context_tokens:
            self._check_room(rendered, sampling.context_tokens)
        found = self._post(
            "/v1/chat/completions",
            {
                **rendered,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "max_tokens": sampling.max_tokens,
                "seed": sampling.seed,
            },
        )
        try:
            return Spoken(message=read(found["choices"][0]), usage=usage(found))
        except (LookupError, TypeError, AttributeError):
            raise RequestError(
                f"{self.url} must answer with a choice: got {str(found)[:80]!r}; is it "
                "an OpenAI-compatible server?"
            ) from None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _check_room(self, rendered: Mapping[str, Any], limit: int) -> None:
        """Raise ContextFull where a limit below the model's own is reached."""
        count = self._post("/tokenize", rendered).get("count")
        if not isinstance(count, int):
            raise RequestError(
                f"{self.url}/tokenize must say `count`: got {count!r}; leave "
                "context_tokens at 0"
            )
        if count >= limit:
            raise ContextFull(
                f"a conversation must leave room for an answer: got {count} tokens in "
                f"a context of {limit}; choose a context policy"
            )

    def _listed(self) -> str:
        found = self._ask(lambda: self._client.get(f"{self.url}/v1/models"))
        try:
            return str(found["data"][0]["id"])
        except (LookupError, TypeError):
            raise RequestError(
                f"{self.url}/v1/models must list a model: got {str(found)[:80]!r}; "
                "name one"
            ) from None

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._ask(
            lambda: self._client.post(f"{self.url}{path}", json=dict(body))
        )

    def _ask(self, send: "Callable[[], httpx.Response]") -> dict[str, Any]:
        """The JSON object of an answer, after as many tries as it takes."""
        words = ""
        for attempt in range(TRIES):
            if attempt:
                self._sleep(min(2.0 ** (attempt - 1), LONGEST_WAIT_SECONDS))
            try:
                response = send()
            except self._failures as error:
                words = str(error) or type(error).__name__
                continue
            if response.status_code not in BUSY:
                return self._read(response)
            words = f"{response.status_code} {response.text[:200]}"
        raise RequestError(
            f"{self.url} must answer: {words}, {TRIES} times; is the server running?"
        )

    def _read(self, response: "httpx.Response") -> dict[str, Any]:
        if response.status_code != 200:
            words = response.text[:300]
            full = response.status_code == 400 and any(w in words for w in _FULL)
            kind = ContextFull if full else RequestError
            raise kind(f"{self.url} answers {response.status_code}: {words}")
        try:
            found = response.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise RequestError(
                f"{self.url} must answer with a JSON object: got "
                f"{response.text[:80]!r}; is it an OpenAI-compatible server?"
            )
        return found


def asked(wanted: RenderOptions) -> dict[str, Any]:
    """How a conversation is to be rendered, as fields of the request."""
    found: dict[str, Any] = {}
    if wanted.tools:
        found["tools"] = list(wanted.tools)
    if not wanted.thinking:
        found["chat_template_kwargs"] = {"thinking": False}
    elif wanted.thinking_effort is not None:
        found["reasoning_effort"] = wanted.thinking_effort
    if wanted.tool_choice != "auto":
        found["tool_choice"] = wanted.tool_choice
    if wanted.response_format != {"type": "text"}:
        found["response_format"] = wanted.response_format
    return found


def read(choice: Mapping[str, Any]) -> Message:
    """A choice as the message that an environment takes."""
    said = choice["message"]
    calls = [call["function"] for call in said.get("tool_calls") or ()]
    return Message(
        reasoning=said.get("reasoning_content") or said.get("reasoning") or None,
        content=said.get("content"),
        tool_calls=tuple(
            ToolCall(c["name"], c["arguments"], _whole(c["arguments"])) for c in calls
        ),
        finish_reason=choice.get("finish_reason"),
        problems=tuple(Problem(kind) for kind in choice.get("problems") or ()),
    )


def usage(found: Mapping[str, Any]) -> Usage:
    """The tokens that the server counted; nothing where it counts none."""
    told = found.get("usage") or {}
    details = told.get("prompt_tokens_details") or {}
    return Usage(
        read=int(told.get("prompt_tokens") or 0),
        cached=int(details.get("cached_tokens") or 0),
        written=int(told.get("completion_tokens") or 0),
    )


def _whole(arguments: str) -> bool:
    """Whether the arguments of a call are a JSON object."""
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False
