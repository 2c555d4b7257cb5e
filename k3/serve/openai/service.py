"""What every endpoint works with: the worker, the tokenizer, the counts."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Protocol, runtime_checkable

from k3.data.tokenizer import Tokenizer
from k3.errors import RequestError
from k3.serve.openai.errors import ApiError, refused
from k3.serve.openai.metrics import Counters
from k3.serve.openai.options import ServerOptions
from k3.serve.openai.structured import Compiler
from k3.serve.request import Output, Request


@runtime_checkable
class Runs(Protocol):
    """A worker, as far as the server needs one: `k3.serve.worker.Worker` is one."""

    def stream(self, request: Request, /) -> AsyncGenerator[Output, None]:
        """The outputs of a request; closing the iterator cancels it."""

    def call(self, fn: Callable[[Any], Any], /) -> Awaitable[Any]:
        """What fn(engine) returns on the engine's own thread."""


class Service:
    """The state behind the endpoints. Without a worker the server is loading."""

    def __init__(
        self, worker: Runs | None, tokenizer: Tokenizer, options: ServerOptions
    ) -> None:
        self.worker, self.tokenizer, self.options = worker, tokenizer, options
        self.counters = Counters(options.names[0])
        self.compiler = Compiler(tokenizer, options.config.text.vocab_size)
        self.started = int(time.time())

    def ready(self) -> Runs:
        """The worker.

        Raises: ApiError 503 while the model is loading, and once the engine stops.
        """
        if self.worker is None:
            raise ApiError(
                503,
                "the model is loading: ask again when /health answers 200",
                code="loading",
                headers={"retry-after": "5"},
            )
        if not getattr(self.worker, "alive", True):
            raise ApiError(
                503, "the engine takes no requests any more", code="unavailable"
            )
        return self.worker

    async def outputs(self, request: Request) -> AsyncGenerator[Output, None]:
        """What the engine gives, counted and timed.

        Raises: ApiError for what it refuses, and 500 for what goes wrong in it.
        """
        clock = self.counters.clock()
        try:
            async with aclosing(self.ready().stream(request)) as stream:
                async for output in stream:
                    clock.take(output)
                    if output.finish == "error":
                        raise ApiError(
                            500,
                            "the engine could not finish this request: "
                            f"{output.error or 'no reason was given'}",
                            code="engine_error",
                        )
                    yield output
        except RequestError as error:
            raise refused(error) from error

    def model_name(self, asked: Any) -> str:
        """The name to answer with.

        Raises: ApiError 404 for the name of another model.
        """
        names = self.options.names
        if asked is None or asked == "":
            return names[0]
        if asked in names:
            return str(asked)
        raise ApiError(
            404,
            f"model must be one of {', '.join(names)}: got {str(asked)[:80]!r}",
            param="model",
            code="model_not_found",
        )
