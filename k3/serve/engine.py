"""The engine: requests in, tokens out, one step at a time."""

import sys

import torch

from k3.config import sizes
from k3.errors import K3Error, RequestError
from k3.model import Model
from k3.model.completion import Decodes, Token
from k3.serve import check, features, speculate
from k3.serve.draft import Draft
from k3.serve.keys import Chain
from k3.serve.metrics import Counts, Metrics, snapshot
from k3.serve.options import EngineOptions as EngineOptions
from k3.serve.options import kept_bytes
from k3.serve.overflow import Overflow
from k3.serve.passes import Passes
from k3.serve.prefix import PrefixCache
from k3.serve.prompts import Prompts
from k3.serve.request import Finish, Output, Request
from k3.serve.scheduler import Lane
from k3.serve.sequence import Sequence


class Engine:
    """Continuous batching over one model. Synchronous: one thread owns it."""

    def __init__(
        self,
        model: Model,
        options: EngineOptions,
        *,
        tokenizer: Decodes | None = None,
        draft: Draft | None = None,
        weights: str = "",
    ) -> None:
        self.model, self.options, self.tokenizer = model, options, tokenizer
        self.draft, self._itemsize = draft, model.dtype.itemsize
        speculate.check(model, draft, options.num_speculative_tokens)
        self.cache = _cache(model, options, weights)
        self._keep = speculate.keep_inputs(options.num_speculative_tokens)
        reads = features.layers(draft)
        self.prompts = Prompts(model, self.cache, reads=reads, routes=options.routes)
        self.passes = Passes(model, self.prompts, self._report, draft)
        self.counts = Counts()
        self.sequences: dict[str, list[Sequence]] = {}
        self.short, self.long = (self._lane(long) for long in (False, True))
        self._version, self._arrivals = model.weight_version, 0
        self._outputs: list[Output] = []

    @property
    def busy(self) -> bool:
        """Whether a step has anything to do or to say."""
        return bool(self.sequences or self._outputs)

    @property
    def waiting(self) -> int:
        """Sequences that hold no state yet, or none any more."""
        return len(self.short.waiting) + len(self.long.waiting)

    def limit(self, prompt_tokens: int) -> int:
        """The most tokens that a prompt of so many and its answer may have."""
        options, config = self.options, self.model.config
        long = prompt_tokens > options.long_tokens
        room = options.long_state_bytes if long else options.state_bytes
        context = options.max_model_len or config.text.max_position_embeddings
        room -= kept_bytes(config, self._keep, self._itemsize)
        return min(context, sizes.context_tokens(config, room, self._itemsize))

    def bytes_at(self, tokens: int) -> int:
        """Bytes of one sequence's state after so many tokens."""
        config, width = self.model.config, self._itemsize
        kept = kept_bytes(config, self._keep, width)
        return kept + sizes.state_bytes(config, tokens, width)

    def check(self, request: Request) -> None:
        """Refuse what can never run here. Raises: RequestError."""
        count = len(request.tokens)
        check.check(request, self.model.config, texts=self.tokenizer is not None)
        check.check_length(
            request,
            self.limit(count),
            long=count > self.options.long_tokens,
            seats=self.options.max_num_long_seqs,
        )
        if request.id in self.sequences:
            raise RequestError(f"request ids are used once at a time: got {request.id}")

    def add(self, request: Request) -> None:
        """Queue a request. Raises: RequestError for what can never run."""
        self.check(request)
        if self.waiting >= self.options.max_waiting:
            raise RequestError(
                f"the queue is full: {self.waiting} requests wait; try again later"
            )
        chain = self._chain(request)
        self._arrivals += 1
        made = [self._sequence(request, i, chain) for i in range(request.n)]
        made[0].siblings = made[1:]
        self.sequences[request.id] = made
        self.counts.requests += 1
        self._lane_of(made[0]).queue(made[0])

    def cancel(self, request_id: str, *, silent: bool = False) -> None:
        """End a request with `abort` and free what it holds; unknown ids do nothing.

        `silent` gives no output for it: nobody listens any more.
        """
        for sequence in list(self.sequences.get(request_id, ())):
            self._end(sequence, "abort")
        if silent:
            them = [o for o in self._outputs if o.request_id != request_id]
            self._outputs = them

    def pause(self, request_id: str) -> int:
        """End a request in silence, to be gone on with; return the tokens kept.

        Nothing is computed: what the prefix cache holds of it stays, on disk too.
        """
        cache, made = self.cache, self.sequences.get(request_id, ())
        kept = [cache.hold(s.chain) for s in made] if cache is not None else []
        self.cancel(request_id, silent=True)
        return max(kept, default=0)

    @torch.inference_mode()
    def step(self) -> list[Output]:
        """Run one pass over prompts and one over what decodes, in each class."""
        if self.model.weight_version != self._version:
            self.new_weights()
        self.counts.steps += 1
        for lane in (self.short, self.long):
            self.counts.preemptions += len(lane.preempt())
            lane.admit()
            self.passes.decode(lane)
            self.passes.prefill(lane, together=lane is self.short)
        outputs, self._outputs = self._outputs, []
        return outputs

    def snapshot(self) -> Metrics:
        """Return what is held now and what was counted so far."""
        lanes, stats = (self.short, self.long), self.cache and self.cache.stats
        held = [s.state.nbytes for lane in lanes for s in lane.prefilling if s.state]
        pages = self.cache and self.cache.index.pages
        return snapshot(
            self.counts,
            running=len(self.short.active),
            waiting=len(self.short.waiting),
            long_running=len(self.long.active),
            long_waiting=len(self.long.waiting),
            state_bytes=sum(held) + sum(lane.batch.nbytes for lane in lanes),
            cache_usage=pages.num_used / len(pages.refs) if pages else 0.0,
            prefix_queries=stats.prompt_tokens if stats else 0,
            prefix_hits=stats.cached_tokens if stats else 0,
            prefix_loads=stats.loads if stats else 0,
            images_encoded=self.prompts.features.encoded,
        )

    def reset_prefix_cache(self) -> None:
        """Forget every stored prefix, on disk too; what runs goes on."""
        if self.cache is not None:
            self.cache.clear()
            if self.cache.overflow is not None:
                self.cache.overflow.clear()

    def new_weights(self, weights: str = "") -> None:
        """Drop every state: the model's weights have changed and are called this.

        What runs goes on from its tokens: they are run again under the new weights.
        """
        for lane in (self.short, self.long):
            for sequence in lane.active:
                lane.send_back(sequence)
        self.prompts.features.clear()
        self._version = self.model.weight_version
        if self.cache is not None:
            self.cache.new_weights(weights)
        for made in self.sequences.values():
            for sequence in made:
                said = sequence.chain.tokens[len(sequence.request.tokens) :]
                chain = self._chain(sequence.request)
                sequence.chain = chain.extend(said, generated=True)

    def _lane(self, long: bool) -> Lane:
        o = self.options
        return Lane(
            max_seqs=o.max_num_long_seqs if long else o.max_num_seqs,
            max_tokens=o.max_num_long_tokens if long else o.max_num_batched_tokens,
            max_bytes=o.long_state_bytes if long else o.state_bytes,
            bytes_at=self.bytes_at,
            row_tokens=1 + o.num_speculative_tokens,
        )

    def _lane_of(self, sequence: Sequence) -> Lane:
        long = len(sequence.request.tokens) > self.options.long_tokens
        return self.long if long else self.short

    def _chain(self, request: Request) -> Chain:
        tokens, images, spoken = request.tokens, request.images, request.spoken
        if self.cache is not None:
            return self.cache.chain(tokens, images, request.salt, spoken=spoken)
        placeholder = self.model.config.media_placeholder_token_id
        chain = Chain(b"", sys.maxsize, images, placeholder)
        return chain.extend(tokens, generated=spoken)

    def _sequence(self, request: Request, index: int, chain: Chain) -> Sequence:
        room = self.limit(len(request.tokens)) - len(request.tokens)
        return Sequence(
            request,
            index,
            chain.fork() if index else chain,
            order=(self._arrivals, index),
            max_tokens=min(request.options.max_tokens, room),
            eos=self.model.config.eos_token_id,
            tokenizer=self.tokenizer,
        )

    def _report(
        self,
        sequence: Sequence,
        chosen: list[Token] | Exception,
        *,
        drafted: int = 0,
        accepted: int = 0,
    ) -> None:
        """Take what one pass gave one sequence; end it if that was all."""
        if isinstance(chosen, Exception):
            self._end(sequence, "error", error=_said(chosen))
            return
        self.counts.generation_tokens += len(chosen)
        self.counts.drafted_tokens += drafted
        self.counts.accepted_tokens += accepted
        if not chosen:
            sequence.finish = "length"
        first = len(sequence) == len(sequence.request.tokens) + len(chosen)
        if first and sequence.index == 0:
            self.counts.prompt_tokens += len(sequence.request.tokens)
            self.counts.cached_tokens += sequence.cached_tokens
        self._outputs.append(
            Output(
                request_id=sequence.request.id,
                index=sequence.index,
                tokens=tuple(chosen),
                finish=sequence.finish,
                cached_tokens=sequence.cached_tokens,
                prompt_logprobs=sequence.reported if first else None,
                drafted=drafted,
                accepted=accepted,
                routes=sequence.take_routes(),
            )
        )
        if sequence.finish:
            self._forget(sequence)

    def _end(
        self, sequence: Sequence, finish: Finish, error: str | None = None
    ) -> None:
        """End a sequence that has not ended by itself."""
        sequence.finish = finish
        self._outputs.append(
            Output(
                request_id=sequence.request.id,
                index=sequence.index,
                finish=finish,
                cached_tokens=sequence.cached_tokens,
                error=error,
            )
        )
        self._forget(sequence)

    def _forget(self, sequence: Sequence) -> None:
        """Free all that a sequence holds."""
        name = f"finished_{sequence.finish}"
        setattr(self.counts, name, getattr(self.counts, name) + 1)
        self._lane_of(sequence).remove(sequence)
        made = self.sequences[sequence.request.id]
        made.remove(sequence)
        if not made:
            del self.sequences[sequence.request.id]


def _cache(model: Model, options: EngineOptions, weights: str) -> PrefixCache | None:
    """The prefix cache, with what lies on disk under the weights' name."""
    if options.cache is None:
        return None
    if not options.cache_dir:
        return PrefixCache(model, options.cache, weights=weights)
    tier = Overflow(options.cache_dir, options.cache_dir_bytes)
    return PrefixCache(model, options.cache, weights=weights, overflow=tier)


def _said(error: Exception) -> str:
    """What a client may be told: our own words, or only the kind of error."""
    if isinstance(error, K3Error):
        return str(error)
    return f"the engine failed on this request: {type(error).__name__}; send it again"
