"""The replicas behind a router: which are up, how busy they are, what was counted."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from k3.errors import RequestError
from k3.serve.route import Ring

# On the loopback a connection is refused or there; only this process can be late.
CONNECT_SECONDS, HEALTH_SECONDS = 30.0, 5.0
CHECK_SECONDS = 1.0
MISSES = 5
"""Health checks in a row without an answer in time that take a replica out."""


@dataclass(slots=True)
class Replica:
    """One server; `ready` is its last health check, `draining` keeps new work off."""

    name: str
    url: str
    ready: bool = False
    draining: bool = False
    in_flight: int = 0
    requests: int = 0
    misses: int = 0
    known: bool = False

    def begin(self) -> None:
        """A request goes there."""
        self.in_flight += 1
        self.requests += 1

    def end(self) -> None:
        """It is over."""
        self.in_flight -= 1

    @property
    def comes_back(self) -> bool:
        """Whether it has been ready, is not now, and may be again."""
        return self.known and not (self.ready or self.draining)

    @property
    def state(self) -> str:
        """What `/health` says of it."""
        if self.draining:
            return "draining" if self.in_flight else "drained"
        return "ready" if self.ready else "down"


class Pool:
    """All replicas, the ring that orders them, and the client that reaches them.

    `counts`: failures seen, streams `restarted` before any text and `resumed` after,
    answers of `busy` replicas, requests `refused` because none was left.
    """

    def __init__(
        self,
        urls: Mapping[str, str],
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.replicas = {name: Replica(name, url) for name, url in urls.items()}
        self.ring = Ring(list(urls))
        self.counts: Counter[str] = Counter()
        # A long prompt may take minutes before its first byte.
        self.client = httpx.AsyncClient(
            transport=transport,
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None),
            trust_env=False,
        )

    def loads(self) -> dict[str, int]:
        """Requests in flight of the replicas that may get more."""
        all_of = self.replicas.values()
        return {r.name: r.in_flight for r in all_of if r.ready and not r.draining}

    def failed(self, replica: Replica) -> None:
        """Take a replica out until a health check finds it well."""
        replica.ready = False
        self.counts["failures"] += 1

    def drain(self, name: str, on: bool = True) -> Replica:
        """Send a replica no more requests, or again. Raises: RequestError."""
        if name not in self.replicas:
            raise RequestError(
                f"a replica must be one of {', '.join(self.replicas)}: got {name!r}"
            )
        self.replicas[name].draining = on
        return self.replicas[name]

    async def check(self, replica: Replica) -> None:
        """Ask a replica for its health."""
        try:
            told = await self.client.get(
                f"{replica.url}/health", timeout=HEALTH_SECONDS
            )
            replica.ready, replica.misses = told.status_code == 200, 0
            replica.known |= replica.ready
        except httpx.TimeoutException:
            # A busy one may be late; one that has stopped is late every time.
            replica.misses += 1
            replica.ready = replica.ready and replica.misses < MISSES
        except httpx.HTTPError:
            replica.ready = False

    async def check_all(self) -> None:
        """Ask all of them."""
        await asyncio.gather(*map(self.check, self.replicas.values()))

    async def watch(self, seconds: float = CHECK_SECONDS) -> None:
        """Ask again and again."""
        while True:
            await self.check_all()
            await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close the connections."""
        await self.client.aclose()
