"""A thread that steps an engine, and the way to it from asyncio."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from k3.errors import RequestError
from k3.serve.engine import Engine
from k3.serve.outbox import Box, Outbox
from k3.serve.request import Output, Request

T = TypeVar("T")
log = logging.getLogger(__name__)


class Worker:
    """Owns an engine: its thread alone calls it, everyone else asks the thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._calls: deque[tuple[Future[Any], Callable[[Engine], Any]]] = deque()
        self._wake = threading.Condition()
        self._outbox = Outbox()
        self._closing = self._draining = False
        self._why, self._failed = "it was closed", False
        self._thread = threading.Thread(target=self._run, name="k3-engine", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether requests are taken and run."""
        return not (self._closing or self._draining)

    async def call(self, fn: Callable[[Engine], T]) -> T:
        """Run fn(engine) between two steps, on the engine's thread; its result."""
        return await asyncio.wrap_future(self._ask(fn))

    async def open(self, request: Request) -> "Stream":
        """Queue a request and return its outputs as they will come.

        Raises: RequestError if it can never run, or the queue is full.
        """
        if self._draining:
            raise RequestError(
                "the engine is shutting down and takes no new requests: send it to "
                "another replica"
            )
        stream = Stream(self, self._outbox.open(request.id, request.n))
        try:
            await self.call(lambda engine: engine.add(request))
        except BaseException:
            await stream.aclose()
            raise
        return stream

    async def stream(self, request: Request) -> AsyncGenerator[Output, None]:
        """The outputs of a request, up to the last of each sample.

        Closing the generator cancels the request. Raises: RequestError before the
        first output.
        """
        stream = await self.open(request)
        try:
            async for output in stream:
                yield output
        finally:
            await stream.aclose()

    async def drain(self, timeout: float) -> bool:
        """Take no new requests and wait for those that run; then cancel the rest.

        Returns whether all have ended by themselves.
        """
        self._draining = True
        try:
            async with asyncio.timeout(timeout):
                while len(self._outbox):
                    await asyncio.sleep(0.01)
        except TimeoutError:
            await self.call(_cancel_all)
            return False
        return True

    def close(self) -> None:
        """Stop the thread; streams that are still open end with an error."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def wait(self) -> None:
        """Wait for the end of the thread. Raises: RequestError if a step failed."""
        self._thread.join()
        if self._failed:
            raise self._stopped()

    def leave(self, box: Box) -> None:
        """Nobody reads a box any more: cancel its request if it still runs."""
        self._outbox.close(box)
        if not box.left:
            return
        # An engine that has stopped holds nothing that could be cancelled.
        with suppress(RequestError):
            self._ask(lambda engine: engine.cancel(box.request_id, silent=True))

    def _ask(self, fn: Callable[[Engine], T]) -> "Future[T]":
        answer: Future[T] = Future()
        with self._wake:
            if self._closing:
                raise self._stopped()
            self._calls.append((answer, fn))
            self._wake.notify()
        return answer

    def _stopped(self) -> RequestError:
        return RequestError(f"the engine has stopped: {self._why}; start it again")

    def _run(self) -> None:
        try:
            while not self._closing:
                self._answer()
                if self._engine.busy:
                    self._outbox.send(self._engine.step())
                else:
                    self._wait()
        except BaseException as error:
            self._why, self._failed = f"a step failed with {type(error).__name__}", True
            log.exception("the engine's thread has ended")
        with self._wake:
            self._closing = True
        for answer, _ in self._calls:
            if answer.set_running_or_notify_cancel():
                answer.set_exception(self._stopped())
        self._outbox.fail(str(self._stopped()))

    def _answer(self) -> None:
        """Do what was asked since the last step, in order."""
        while self._calls:
            answer, fn = self._calls.popleft()
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(fn(self._engine))
            except Exception as error:
                answer.set_exception(error)

    def _wait(self) -> None:
        with self._wake:
            self._wake.wait_for(lambda: self._calls or self._closing)


class Stream:
    """The outputs of one request; `aclose` cancels what has not ended."""

    def __init__(self, worker: Worker, box: Box) -> None:
        self._worker, self._box = worker, box

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> Output:
        if not self._box.left:
            raise StopAsyncIteration
        output = await self._box.next()
        if not self._box.left:
            await self.aclose()
        return output

    async def aclose(self) -> None:
        """Read no more. Once everything has come, there is nothing to cancel."""
        self._worker.leave(self._box)


def _cancel_all(engine: Engine) -> None:
    for request_id in list(engine.sequences):
        engine.cancel(request_id)
