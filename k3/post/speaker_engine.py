"""The engine of this process as a speaker: conversations rendered in XTML."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import replace

from k3.config import K3Config
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

    def __init__(self, worker: Worker, tokenizer: Tokenizer, config: K3Config) -> None:
        self.worker, self.tokenizer, self.config = worker, tokenizer, config

    def answer(
        self, messages: Sequence[Chat], wanted: RenderOptions, sampling: Sampling
    ) -> Spoken:
        """The answer to a conversation. Raises: ContextFull, RequestError."""
        if any(isinstance(m.get("content"), list) for m in messages):
            request, start_in = self._with_pictures(messages, wanted)
        else:
            prompt = xtml.render(list(messages), wanted)
            request, start_in = _request(prompt.encode(self.tokenizer)), prompt.start_in
        return asyncio.run(self._answer(request, start_in, sampling))

    def _with_pictures(
        self, messages: Sequence[Chat], wanted: RenderOptions
    ) -> tuple[Request, Channel]:
        """The request of a conversation that has parts, read as the server reads it."""
        from k3.serve.openai import ServerOptions, images
        from k3.serve.openai.errors import ApiError

        options = ServerOptions(config=self.config, names=("local",))
        try:
            found = images.read(list(messages), wanted, options)
        except ApiError as error:
            raise RequestError(error.message) from error
        prompt = xtml.render(list(messages), wanted, found.prompts)
        ids = prompt.encode(self.tokenizer)
        if not found.prompts:
            return _request(ids), prompt.start_in
        placeholder = self.config.media_placeholder_token_id
        assert placeholder is not None, "a model that sees has a placeholder"
        merge = options.image_limits.merge_kernel_size
        ids, places = found.expand(ids, placeholder, merge)
        made = replace(
            _request(ids), images=places, pixels=found.pixels, grids=found.grid_rows
        )
        return made, prompt.start_in

    async def _answer(
        self, request: Request, start_in: Channel, sampling: Sampling
    ) -> Spoken:
        ids = request.tokens
        limit = await self.worker.call(lambda engine: engine.limit(len(ids)))
        room = min(limit, sampling.context_tokens or limit) - len(ids)
        if room < 1:
            raise ContextFull(
                f"a conversation must leave room for an answer: got {len(ids)} tokens "
                f"in a context of {len(ids) + room}; choose a context policy"
            )
        request = replace(request, options=self._options(sampling, room))
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


def _request(ids: Sequence[int]) -> Request:
    """A request of its own name; its options are still to be given."""
    name = secrets.token_hex(8)
    return Request(id=name, tokens=tuple(ids), options=GenerateOptions())
