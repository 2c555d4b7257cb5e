"""A process that serves: it answers before its model is loaded, and ends politely."""

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette

from k3.errors import RequestError
from k3.serve.worker import Worker

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Server(uvicorn.Server):
    """Ends at the first signal once every answer is sent, at the second at once."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the signals while serving; they are not raised again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._stop) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, *_: Any) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


class Loading:
    """The thread that loads a model while the server already answers.

    It calls `ended` when the model is there, and when it, or later the engine, fails.
    """

    def __init__(
        self,
        load: Callable[[], Worker],
        service: Any,
        ended: Callable[[BaseException | None], None],
    ) -> None:
        self._load, self._service, self._ended = load, service, ended
        self.worker: Worker | None = None
        self.error: BaseException | None = None
        # A server that is told to stop does not wait for a model to load.
        threading.Thread(target=self._run, name="k3-load", daemon=True).start()

    def _run(self) -> None:
        try:
            self.worker = self._load()
            self._service.worker = self.worker
            self._ended(None)
            # Without its engine a server is of no use; who watches it starts another.
            self.worker.wait()
        except BaseException as error:
            self.error = error
            self._ended(error)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one.

    Raises: RequestError.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        raise RequestError(
            f"cannot listen on {host}:{port}: {error}; choose another --host or --port"
        ) from error


def serve(
    application: Starlette,
    load: Callable[[], Worker],
    listening: socket.socket,
    *,
    drain_seconds: float,
    loaded: Callable[[], None],
) -> bool:
    """Serve until a signal comes; whether every answer was sent before the end.

    `loaded` is called when the model is. Raises: what `load` raises, and RequestError
    once the engine has failed and every stream was told.
    """
    config = uvicorn.Config(
        application,
        log_level="warning",
        lifespan="off",
        access_log=False,
        timeout_graceful_shutdown=round(drain_seconds),
    )
    server = Server(config)

    def ended(error: BaseException | None) -> None:
        if error is not None:
            server.should_exit = True
        else:
            loaded()

    loading = Loading(load, application.state.service, ended)
    asyncio.run(server.serve(sockets=[listening]))
    if loading.worker is not None:
        loading.worker.close()
    if loading.error is not None:
        raise loading.error
    return not server.force_exit
