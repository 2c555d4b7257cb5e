"""Rollouts over a server that continues token ids and tells which came, how likely.

Asked of `POST /v1/completions`: a prompt of ids, `stream`, `logprobs`,
`return_token_ids`. Each chunk's choice then has `token_ids` and one of
`logprobs.token_logprobs` for each. Ours answers so, vLLM from 0.10.2, SGLang from July
2026 (sgl-project/sglang#30917).
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from k3.errors import RequestError
from k3.post import remote_stream as stream
from k3.post.engine import SamplerOptions, place_seed
from k3.train.rollout import Picture, Piece

T = TypeVar("T")
TRIES = 5
"""How often in a row a server may fail before its trajectory does."""
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.5, 30.0
STEP_SECONDS = 60.0
"""How long a step waits for something to come."""


@dataclass(slots=True)
class Turn:
    """What one trajectory asked for, what came, and how much of it was handed on."""

    key: str
    prompt: list[int]
    most: int
    came: list[tuple[int, float]] = field(default_factory=list)
    done: bool = False
    error: str = ""
    told: int = 0
    reading: "Future[None] | None" = None

    def tokens(self, count: int | None = None) -> list[int]:
        """The prompt and what came, or only the first `count` of that."""
        return self.prompt + [token for token, _ in self.came[:count]]

    def news(self) -> Piece:
        """What came since the last time."""
        # Whoever reads says so last: what is done has come whole.
        done, since = self.done, self.told
        new = self.came[since:]
        self.told += len(new)
        ids, logprobs = tuple(t for t, _ in new), tuple(p for _, p in new)
        return Piece(self.key, ids, logprobs, done)


class ServerSampler:
    """A `Sampler` over a server; one stream for each trajectory that is active.

    `push(version)` gives the server the new weights when `update` is called; without
    one its weights stay. Where a stream breaks, what has come is kept, and the rest is
    asked for behind it. `seats` trajectories run at a time; the server may queue some.
    """

    def __init__(
        self,
        url: str,
        options: SamplerOptions | None = None,
        *,
        model: str = "",
        key: str = "",
        seats: int = 64,
        push: Callable[[int], None] | None = None,
        timeout_seconds: float = 600.0,
    ) -> None:
        self.url = url.rstrip("/").removesuffix("/completions").removesuffix("/v1")
        self.options, self.seats = options or SamplerOptions(), seats
        self._key, self._timeout, self._push = key, timeout_seconds, push
        self._version = 0
        self._turns: dict[str, Turn] = {}
        self._paused: dict[str, Turn] = {}
        self._news: queue.Queue[str] = queue.Queue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.model, self.context_tokens = self._call(self._begin(model))

    @property
    def version(self) -> int:
        """How many updates of the weights there were."""
        return self._version

    def update(self, version: int | None = None) -> None:
        """Give the server new weights. What came of older ones unheard is dropped.

        Raises: RequestError where nothing pushes weights, or for an older version.
        """
        version = self._version + 1 if version is None else version
        if version <= self._version:
            raise RequestError(
                f"the version of the weights only grows: got {version} after "
                f"{self._version}"
            )
        if self._push is None:
            raise RequestError(
                f"{self.url} keeps its weights unless they are pushed to it: got an "
                "update; give the sampler push="
            )
        self._paused.clear()
        self._push(version)
        self._version = version

    def submit(
        self,
        key: str,
        tokens: Sequence[int],
        max_tokens: int,
        pictures: Sequence[Picture] = (),
    ) -> None:
        """Begin to write behind these tokens, or go on where a pause left off."""
        if pictures:
            raise RequestError(
                "completions take token ids alone: got a picture; sample trajectories "
                "with pictures on an engine of this process"
            )
        if key in self._turns:
            raise RequestError(f"a trajectory is submitted once at a time: got {key}")
        turn = self._paused.pop(key, None)
        if turn is None or turn.tokens(turn.told) != list(tokens):
            turn = Turn(key, list(tokens), max_tokens)
        self._turns[key] = turn
        self._news.put(key)
        turn.reading = asyncio.run_coroutine_threadsafe(self._read(turn), self._loop)

    def step(self) -> list[Piece]:
        """What has come since the last step; waits for something.

        Raises: RequestError where the server refuses, or fails too often.
        """
        if not self._turns:
            return []
        try:
            heard = {self._news.get(timeout=STEP_SECONDS)}
        except queue.Empty:
            return []
        while not self._news.empty():
            heard.add(self._news.get())
        pieces = [self._heard(self._turns[k]) for k in sorted(heard & {*self._turns})]
        return [piece for piece in pieces if piece.tokens or piece.done]

    def pause(self, key: str) -> None:
        """Close a trajectory's stream; what came unheard is kept for later."""
        turn = self._turns.pop(key, None)
        if turn is not None:
            self._stop(turn)
            self._paused[key] = turn

    def room(self) -> int:
        """How many seats are free."""
        return max(0, self.seats - len(self._turns))

    def close(self) -> None:
        """Close all streams."""
        for turn in self._turns.values():
            self._stop(turn)
        self._turns.clear()
        self._call(self._client.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _heard(self, turn: Turn) -> Piece:
        if turn.error:
            raise RequestError(f"trajectory {turn.key} cannot go on: {turn.error}")
        piece = turn.news()
        if piece.done:
            del self._turns[turn.key]
        return piece

    async def _begin(self, model: str) -> tuple[str, int]:
        """Open the client; the name of the model, and tokens of its context or 0."""
        import httpx

        limits = httpx.Limits(max_connections=None)
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        self._client: httpx.AsyncClient = httpx.AsyncClient(
            headers=headers, timeout=self._timeout, limits=limits
        )
        try:
            response = await self._client.get(f"{self.url}/v1/models")
            listed = response.raise_for_status().json()["data"]
            found = next((m for m in listed if m["id"] == model), listed[0])
            return model or str(found["id"]), int(found.get("max_model_len") or 0)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, LookupError) as error:
            raise RequestError(
                f"{self.url}/v1/models must list a model: got {error!r:.120}; is an "
                "OpenAI-compatible server there?"
            ) from None

    async def _read(self, turn: Turn) -> None:
        """Stream a turn to its end, again and again where the server fails."""
        failures = 0
        while not turn.done and not turn.error:
            before = len(turn.came)
            try:
                await self._stream(turn)
            except stream.Full:
                turn.done = True
            except RequestError as error:
                turn.error = str(error)
            except Exception as error:
                failures = 1 if len(turn.came) > before else failures + 1
                if failures >= TRIES:
                    turn.error = f"{self.url} failed {TRIES} times: {error!r:.200}"
                else:
                    wait = FIRST_WAIT_SECONDS * 2 ** (failures - 1)
                    await asyncio.sleep(min(wait, LONGEST_WAIT_SECONDS))
        self._news.put(turn.key)

    async def _stream(self, turn: Turn) -> None:
        """One request for what a turn still lacks."""
        tokens, left = turn.tokens(), turn.most - len(turn.came)
        if self.context_tokens:
            left = min(left, self.context_tokens - len(tokens))
        # A stream may break between the last token and the word that it was the last.
        ended = bool(turn.came) and turn.came[-1][0] in self.options.stop_ids
        if left < 1 or ended:
            turn.done = True
            return
        seed = place_seed(self.options.seed, turn.key, len(tokens)) >> 32
        asked = stream.body(self.model, tokens, left, seed, self.options)
        path = f"{self.url}/v1/completions"
        async with self._client.stream("POST", path, json=asked) as response:
            async for chunk in stream.chunks(response):
                turn.came.extend(chunk.tokens)
                turn.done = chunk.done
                self._news.put(turn.key)

    def _stop(self, turn: Turn) -> None:
        """Close a stream; nothing comes afterwards."""

        async def ended() -> None:
            pass

        assert turn.reading is not None
        turn.reading.cancel()
        self._call(ended())

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run in the thread of the streams, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
