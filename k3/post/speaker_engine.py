"""The engine of this process as a speaker: conversations rendered in XTML."""

import asyncio
import secrets
from collections.abc import Sequence

from k3.data import xtml
from k3.data.tokenizer import Tokenizer
from k3.data.xtml import RenderOptions
from k3.data.xtml.render import Channel
from k3.envs.environment import Chat
from k3.errors import RequestError
from k3.model.completion import GenerateOptions, Token
from k3.post import episode
from k3.post.speaker import ContextFull, Sampling, Spoken, Usage
from k3.serve.request import Request
from k3.serve.worker import Worker


class EngineSpeaker:
    """A `Speaker` over a worker; answers that are asked for at once run together."""

    def __init__(self, worker: Worker, tokenizer: Tokenizer) -> None:
        self.worker, self.tokenizer = worker, tokenizer

    def answer(
        self, messages: Sequence[Chat], wanted: RenderOptions, sampling: Sampling
    ) -> Spoken:
        """The answer to a conversation. Raises: ContextFull, RequestError."""
        prompt = xtml.render(list(messages), wanted)
        ids = tuple(prompt.encode(self.tokenizer))
        return asyncio.run(self._answer(ids, prompt.start_in, sampling))

    async def _answer(
        self, ids: tuple[int, ...], start_in: Channel, sampling: Sampling
    ) -> Spoken:
        limit = await self.worker.call(lambda engine: engine.limit(len(ids)))
        room = min(limit, sampling.context_tokens or limit) - len(ids)
        if room < 1:
            raise ContextFull(
                f"a conversation must leave room for an answer: got {len(ids)} tokens "
                f"in a context of {len(ids) + room}; choose a context policy"
            )
        request = Request(
            id=secrets.token_hex(8), tokens=ids, options=self._options(sampling, room)
        )
        tokens: list[Token] = []
        cached = 0
        async for output in self.worker.stream(request):
            if output.error is not None:
                raise RequestError(f"the answer has failed: {output.error}")
            tokens += output.tokens
            cached = output.cached_tokens
        usage = Usage(read=len(ids), cached=cached, written=len(tokens))
        written = [token.id for token in tokens]
        message = episode.read(written, self.tokenizer, start_in)
        return Spoken(message=message, usage=usage)

    def _options(self, sampling: Sampling, room: int) -> GenerateOptions:
        return GenerateOptions(
            max_tokens=min(sampling.max_tokens, room),
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            seed=sampling.seed,
            stop_ids=(episode.end_id(self.tokenizer),),
        )
