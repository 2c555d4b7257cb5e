"""A replica without a model: the engine's own lanes, on a clock instead of a GPU."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from k3.config import K3Config, sizes
from k3.serve.options import EngineOptions
from k3.serve.scheduler import HEADROOM_TOKENS, Lane
from k3.serve.sequence import Sequence
from k3.serve.traffic import Conversation

HASH_TOKENS = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Speed:
    """Seconds of a step: assumptions, to be set from a measurement of one's own.

    A step costs `step`, `prompt_token` for each token of a prompt, `attended` for each
    thousand tokens that it attends to, and `row` for each sequence that decodes.
    """

    step: float = 0.012
    prompt_token: float = 2e-5
    attended: float = 2e-8
    row: float = 2e-4


class Job:
    """A request under way, as far as a lane looks at it."""

    def __init__(
        self, talk: Conversation, turn: int, prompt: int, arrived: float
    ) -> None:
        self.talk, self.turn, self.prompt, self.arrived = talk, turn, prompt, arrived
        self.answer = talk.turns[turn].answer_tokens
        self.most = prompt + self.answer
        self.order = (0, 0)
        self.first: float | None = None
        self.cached = self.made = self.preempted = 0
        self.attempts = 1
        self.restart()

    def restart(self) -> None:
        """Lose the state, not the tokens: all of them are to be run again."""
        self.position = 0

    def __len__(self) -> int:
        return self.prompt + self.made

    @property
    def prompted(self) -> bool:
        """Whether all that it holds has been run."""
        return self.position >= len(self)


class Rows:
    """The sequences that decode, in place of `serve.batch.Batch`: no states."""

    def __init__(self) -> None:
        self.rows: list[Job] = []

    def drop(self, job: Job) -> None:
        """Let one go."""
        self.rows = [other for other in self.rows if other is not job]


class Stored:
    """Prefixes of conversations, the least recently used forgotten first."""

    def __init__(
        self, bytes_at: Callable[[int], int], most_bytes: int, hash_tokens: int
    ) -> None:
        self._bytes_at, self._most, self._unit = bytes_at, most_bytes, hash_tokens
        self._held: OrderedDict[str, int] = OrderedDict()
        self._bytes = 0

    def hit(self, talk: Conversation, prompt: int) -> int:
        """Tokens of a prompt that need not be run: whole hash blocks, not the last."""
        shared = min(talk.kind.system_tokens, self._held.get(talk.kind.name, 0))
        found = max(self._held.get(talk.key, 0), shared)
        for key in (talk.kind.name, talk.key):
            if key in self._held:
                self._held.move_to_end(key)
        return min(found, prompt - 1) // self._unit * self._unit

    def put(self, talk: Conversation, tokens: int) -> None:
        """Keep a conversation, and what starts all of its class."""
        for key, count in (
            (talk.kind.name, talk.kind.system_tokens),
            (talk.key, tokens),
        ):
            if count:
                self._forget(key)
                self._held[key] = count
                self._bytes += self._bytes_at(count)
        while self._bytes > self._most and self._held:
            self._forget(next(iter(self._held)))

    def _forget(self, key: str) -> None:
        if key in self._held:
            self._bytes -= self._bytes_at(self._held.pop(key))


class Machine:
    """One replica: lanes that admit as the engine's do, and the time a step takes."""

    def __init__(
        self,
        config: K3Config,
        options: EngineOptions,
        speed: Speed,
        *,
        cache_bytes: int,
        by_class: bool = True,
    ) -> None:
        self.options, self.speed, self.by_class = options, speed, by_class
        empty = sizes.memory(config, 0)
        fixed, each = empty.fixed_bytes, empty.mla_bytes_per_token
        self._bytes_at: Callable[[int], int] = lambda tokens: fixed + tokens * each
        self._cache_bytes = cache_bytes
        self._arrivals = 0
        self.crash()

    def crash(self) -> list[Job]:
        """Lose everything; returns the jobs that were there."""
        lost = self.jobs if self._arrivals else []
        self.cache = Stored(self._bytes_at, self._cache_bytes, HASH_TOKENS)
        self.lanes = [self._lane(False)]
        if self.by_class:
            self.lanes.append(self._lane(True))
        return lost

    def _lane(self, long: bool) -> Lane:
        o, both = self.options, not self.by_class
        seqs = (o.max_num_long_seqs, o.max_num_seqs)
        tokens = (o.max_num_long_tokens, o.max_num_batched_tokens)
        room = (o.long_state_bytes, o.state_bytes)
        made = Lane(
            max_seqs=sum(seqs) if both else seqs[not long],
            max_tokens=sum(tokens) if both else tokens[not long],
            max_bytes=sum(room) if both else room[not long],
            bytes_at=self._bytes_at,
        )
        made.batch = cast(Any, Rows())
        return made

    @property
    def jobs(self) -> list[Job]:
        """All that it has."""
        lanes = self.lanes
        return cast(list[Job], [s for x in lanes for s in (*x.waiting, *x.active)])

    @property
    def load(self) -> int:
        """How many requests it has."""
        return sum(len(x.waiting) + len(x.active) for x in self.lanes)

    def add(self, job: Job) -> None:
        """Queue a request in its lane."""
        self._arrivals += 1
        job.order = (self._arrivals, 0)
        long = self.by_class and job.prompt > self.options.long_tokens
        self.lanes[long].queue(cast(Sequence, job))

    def step(self, now: float, until: float) -> tuple[float, list[Job]]:
        """Run a step, or several that are alike before `until`: (end, finished)."""
        took, prompted, decoding = self.speed.step, [], []
        for lane in self.lanes:
            for job in cast(list[Job], lane.preempt()):
                job.preempted += 1
            lane.admit()
            decoding += cast(list[Job], lane.running)
            pieces = list(self._prompts(lane))
            took += sum(self._seconds(*piece) for piece in pieces)
            prompted += [(lane, job) for job, _ in pieces if job.prompted]
        took += self.speed.row * len(decoding)
        steps = self._alike(decoding, (until - now) / took)
        end = now + steps * took
        for job in decoding:
            job.made, job.position = job.made + steps, job.position + steps
        for lane, job in prompted:
            lane.prefilling.remove(cast(Sequence, job))
            cast(Rows, lane.batch).rows.append(job)
            job.first, job.made = job.first or end, job.made + 1
            self.cache.put(job.talk, job.prompt)
        return end, self._finished()

    def _prompts(self, lane: Lane) -> Any:
        """Yield (job, tokens) of the pieces of prompts that a step runs."""
        budget = lane.prompt_tokens()
        for job in cast(list[Job], list(lane.prefilling)):
            if budget < 1:
                return
            if job.position == 0:
                job.position = job.cached = self.cache.hit(job.talk, len(job))
            tokens = min(budget, len(job) - job.position)
            budget, job.position = budget - tokens, job.position + tokens
            yield job, tokens

    def _seconds(self, job: Job, tokens: int) -> float:
        attended = tokens * (job.position - tokens / 2) / 1000
        return self.speed.prompt_token * tokens + self.speed.attended * attended

    def _alike(self, decoding: list[Job], most: float) -> int:
        """How many steps differ in nothing: no prompt waits or runs, no row ends."""
        if any(lane.waiting or lane.prefilling for lane in self.lanes) or not decoding:
            return 1
        shortest = min(job.answer - job.made for job in decoding)
        return max(1, int(min(shortest, most, HEADROOM_TOKENS)))

    def _finished(self) -> list[Job]:
        done = []
        for lane in self.lanes:
            for job in cast(list[Job], list(lane.running)):
                if job.made >= job.answer:
                    cast(Rows, lane.batch).drop(job)
                    self.cache.put(job.talk, len(job))
                    done.append(job)
        return done
