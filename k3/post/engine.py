"""Rollouts over the engine of this process: turns go in, tokens come out, step by step.

What is paused is kept by the engine's prefix cache up to the last boundary of a hash
block, in memory and in its folder on disk, under the version of the weights.
"""

import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import torch

from k3.errors import RequestError
from k3.model import Model
from k3.model.completion import GenerateOptions
from k3.serve import keys
from k3.serve.engine import Engine
from k3.serve.request import Output, Request
from k3.train.rollout import Picture, Piece


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplerOptions:
    """How turns are sampled. `growth`: tokens of room that each trajectory is left.

    Recorded log-probabilities are those of the model at temperature 1, nothing cut:
    with the defaults that is the law that was sampled from, as RL needs it.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    stop_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    seed: int = 0
    growth: int = 64

    def __post_init__(self) -> None:
        """Refuse what cannot be sampled with."""
        _ = self.turn(1)
        if self.growth < 1:
            raise RequestError(f"growth must be at least 1 token: got {self.growth}")

    @property
    def plain(self) -> bool:
        """Whether recorded log-probabilities are of the law that was sampled from."""
        return self.temperature == 1 and self.top_p == 1

    def turn(self, max_tokens: int) -> GenerateOptions:
        """What is asked of one turn."""
        return GenerateOptions(
            max_tokens=max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            stop_ids=self.stop_ids,
            ignore_eos=self.ignore_eos,
        )


class EngineSampler:
    """A `Sampler` over an engine, which it owns while it is used.

    A token depends on the seed, its trajectory's key, its place and the tokens before
    it, never on who else runs, when it was paused or in which process it goes on.
    """

    def __init__(self, engine: Engine, options: SamplerOptions | None = None) -> None:
        self.engine, self.options = engine, options or SamplerOptions()
        self._version, self._weights = 0, _stamp(engine.model)
        self._over: list[Piece] = []

    @property
    def version(self) -> int:
        """How many updates of the weights there were."""
        return self._version

    def update(self, version: int | None = None, name: str = "") -> None:
        """The model's weights have changed: nothing computed before is used again.

        `version` is the number of the new weights where it is not one more. What the
        engine's folder holds is dropped; a `name` for the new weights lets another
        process that has them go on from it.
        Raises: RequestError for a version that is not larger.
        """
        version = self._version + 1 if version is None else version
        if version <= self._version:
            raise RequestError(
                f"the version of the weights only grows: got {version} after "
                f"{self._version}"
            )
        self._version, self._weights = version, _stamp(self.engine.model)
        self.engine.model.weight_version = secrets.randbits(62)
        cache = self.engine.cache
        if cache is not None and cache.overflow is not None:
            cache.overflow.clear()
            name = name or f"{self.engine.model.weight_version:x}"
        self.engine.new_weights(name)

    def submit(
        self,
        key: str,
        tokens: Sequence[int],
        max_tokens: int,
        pictures: Sequence[Picture] = (),
    ) -> None:
        """Begin to write behind these tokens, or go on where a pause left off.

        Where the context has no room for another token the turn ends without one.
        """
        count = len(tokens)
        if count >= self.engine.limit(count):
            self._over.append(Piece(key, (), (), done=True))
            return
        request = Request(
            id=key,
            tokens=tuple(tokens),
            options=self.options.turn(max_tokens),
            images=tuple(_image(picture, self.engine) for picture in pictures),
            pixels=torch.cat([p.pixels for p in pictures]) if pictures else None,
            grids=torch.tensor([p.grid for p in pictures]) if pictures else None,
            spoken=True,
        )
        self.engine.add(request)

    def step(self) -> list[Piece]:
        """One step of the engine.

        Raises: RequestError where a turn has failed, or weights changed in silence.
        """
        if self._weights != _stamp(self.engine.model):
            raise RequestError(
                f"the weights have changed since version {self._version} began to "
                "sample: call update(), so that no state of the old ones is used"
            )
        for key, made in self.engine.sequences.items():
            for sequence in made:
                seed = place_seed(self.options.seed, key, len(sequence))
                sequence.running.generator.manual_seed(seed)
        over, self._over = self._over, []
        return over + [_piece(output) for output in self.engine.step()]

    def pause(self, key: str) -> None:
        """Stop a trajectory; its state stays in the prefix cache. Unknown: nothing."""
        self.engine.pause(key)
        self._over = [piece for piece in self._over if piece.key != key]

    def room(self) -> int:
        """How many more fit, each with room to grow, beside those that are there."""
        lane = self.engine.short
        them = [*lane.active, *lane.waiting]
        longest = max((len(s) for s in them), default=1) + self.options.growth
        most = max(1, lane.max_bytes // self.engine.bytes_at(longest))
        return max(0, min(most, lane.max_seqs) - len(them))


def place_seed(seed: int, key: str, place: int) -> int:
    """The seed of the number that draws the token at a place of a trajectory."""
    told = struct.pack("<qq", seed, place) + key.encode()
    made = blake2b(told, digest_size=8, person=b"k3 place seed")
    return int.from_bytes(made.digest(), "little") >> 1


def _stamp(model: Model) -> list[tuple[int, int]]:
    """Where each weight lies and how often it was written to."""
    tensors = (*model.parameters(), *model.buffers())
    return [(x.data_ptr(), x._version) for x in tensors]


def _image(picture: Picture, engine: Engine) -> keys.Image:
    """Where a picture stands in the tokens, with its content's digest."""
    vision = engine.model.config.vision
    merge = vision.merge_kernel_size if vision else (1, 1)
    return keys.Image(
        start=picture.start,
        tokens=(picture.grid[1] // merge[0]) * (picture.grid[2] // merge[1]),
        digest=keys.content(picture.pixels, picture.grid),
    )


def _piece(output: Output) -> Piece:
    if output.error is not None:
        raise RequestError(
            f"trajectory {output.request_id} cannot go on: {output.error}"
        )
    return Piece(
        output.request_id,
        tuple(token.id for token in output.tokens),
        tuple(token.logprob for token in output.tokens),
        bool(output.finish),
        output.routes,
    )
