"""The replicas that one request has been given to, and the one that is next."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from k3.serve import route
from k3.serve.openai.errors import ApiError
from k3.serve.pool import Pool, Replica

ATTEMPTS = 2
"""How many replicas may take one request: one that kills a replica kills no third."""
BUSY = (429, 503)
PATIENCE_SECONDS, POLL_SECONDS = 10.0, 0.1


@dataclass(frozen=True, slots=True)
class Call:
    """A request as it came, and the key it is routed by."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What turns of one conversation share."""
        return route.prefix_key(self.body, self.headers.get(route.SESSION_HEADER, ""))


class Attempts:
    """The replicas that one request has been given to, and the next one."""

    def __init__(self, pool: Pool, call: Call) -> None:
        self.pool, self.call = pool, call
        self._order = pool.ring.order(call.key)
        self._tried: set[str] = set()
        self._reached = 0

    async def next(self) -> Replica | None:
        """The best replica that has not had the request, None if none may.

        While none is ready it waits a while for one that has been: replicas that are
        late or start again come back, and a request is queued rather than lost.
        """
        until = time.monotonic() + PATIENCE_SECONDS
        while (found := self._best()) is None and self._may_wait(until):
            await asyncio.sleep(POLL_SECONDS)
        return found

    def _may_wait(self, until: float) -> bool:
        if self._reached >= ATTEMPTS or time.monotonic() >= until:
            return False
        others = self.pool.replicas.keys() - self._tried
        return any(self.pool.replicas[name].comes_back for name in others)

    def _best(self) -> Replica | None:
        if self._reached >= ATTEMPTS:
            return None
        loads = self.pool.loads()
        left = [n for n in route.choose(self._order, loads) if n not in self._tried]
        if not left:
            return None
        self._tried.add(left[0])
        return self.pool.replicas[left[0]]

    def lost(self, replica: Replica, reached: bool) -> None:
        """The replica went away."""
        self._reached += reached
        self.pool.failed(replica)

    def refused(self, status: int) -> None:
        """The replica takes no more for now, or has failed at this request."""
        self._reached += status not in BUSY
        self.pool.counts["busy" if status in BUSY else "failures"] += 1

    def over(self) -> ApiError:
        """The error when no replica is left."""
        self.pool.counts["refused"] += 1
        if self._reached:
            return ApiError(
                502,
                f"{self._reached} replicas were lost while they answered; send the "
                "request again",
                code="replica_lost",
            )
        return ApiError(
            503,
            "no replica is ready; try again later",
            code="unavailable",
            headers={"retry-after": "1"},
        )
