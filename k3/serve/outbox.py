"""From the engine's thread to the event loops of those who wait for outputs."""

import asyncio
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from k3.errors import RequestError
from k3.serve.request import Output


@dataclass(eq=False, slots=True)
class Box:
    """The outputs of one request on their way; `left` are samples not at their end."""

    request_id: str
    left: set[int]
    loop: asyncio.AbstractEventLoop
    outputs: "asyncio.Queue[Output]" = field(default_factory=asyncio.Queue)

    async def next(self) -> Output:
        """Wait for the next output."""
        output = await self.outputs.get()
        if output.finish:
            self.left.discard(output.index)
        return output


class Outbox:
    """Boxes by request id. Any thread may call it."""

    def __init__(self) -> None:
        self._boxes: dict[str, Box] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._boxes)

    def open(self, request_id: str, samples: int) -> Box:
        """Return a new box for the event loop that asks. Raises: RequestError."""
        box = Box(request_id, set(range(samples)), asyncio.get_running_loop())
        with self._lock:
            if request_id in self._boxes:
                raise RequestError(
                    f"request ids are used once at a time: got {request_id} again; "
                    "give each request its own"
                )
            self._boxes[request_id] = box
        return box

    def close(self, box: Box) -> None:
        """Throw away what still comes for a box."""
        with self._lock:
            if self._boxes.get(box.request_id) is box:
                del self._boxes[box.request_id]

    def send(self, outputs: Iterable[Output]) -> None:
        """Deliver what a step gave, with one call to each event loop."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Box, Output]]] = {}
        with self._lock:
            for output in outputs:
                if (box := self._boxes.get(output.request_id)) is not None:
                    by_loop.setdefault(box.loop, []).append((box, output))
        for loop, letters in by_loop.items():
            # A loop that was closed has nobody left who waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_deliver, letters)

    def fail(self, message: str) -> None:
        """End every sample of every box with an error."""
        with self._lock:
            boxes = list(self._boxes.values())
        self.send(
            Output(request_id=box.request_id, index=i, finish="error", error=message)
            for box in boxes
            for i in sorted(box.left)
        )


def _deliver(letters: list[tuple[Box, Output]]) -> None:
    for box, output in letters:
        box.outputs.put_nowait(output)
