"""An environment as an episode of a rollout: messages on one side, tokens on the other.

What the policy wrote stays token for token; what the environment says is rendered
behind it, so that each turn's prompt begins with all tokens before it.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from k3.data import xtml
from k3.data.tokenizer import Tokenizer
from k3.data.xtml import Message, RenderOptions, segments
from k3.data.xtml.render import Channel
from k3.envs import environment
from k3.envs.environment import Chat, Environment
from k3.errors import RequestError

Shape = Callable[[Environment], float]
"""The reward of an environment that has ended, from -1 to 1; 1 for a score of 1."""


@runtime_checkable
class Credited(Protocol):
    """An environment that says how near an attempt came."""

    def credit(self) -> float:
        """From 0 to 1, and 1 where the score is 1 alone."""


def scored(environment: Environment) -> float:
    """The score itself."""
    return environment.score()


def credited(environment: Environment) -> float:
    """How near it came, where the environment says so; else the score."""
    if isinstance(environment, Credited):
        return environment.credit()
    return environment.score()


class EnvironmentEpisode:
    """Implements `k3.train.rollout.Episode` over an environment, and closes it.

    `effort` opens a think channel and says how much to think there; without it the
    conversation is as the environment wants it.
    An answer that the length limit cut, or whose calls XTML cannot show again, ends
    the episode with what the environment has seen until then.
    """

    def __init__(
        self,
        environment: Environment,
        tokenizer: Tokenizer,
        *,
        effort: str | None = None,
        shape: Shape = scored,
    ) -> None:
        self.environment, self.tokenizer = environment, tokenizer
        self.effort, self.shape = effort, shape
        self.messages: list[Chat] = []
        self.turns = 0
        self._start_in: Channel = "response"
        self._reward: float | None = None

    @property
    def wanted(self) -> RenderOptions:
        """How the conversation is rendered."""
        wanted, effort = self.environment.wanted, self.effort
        if effort is None:
            return wanted
        return dataclasses.replace(wanted, thinking=True, thinking_effort=effort)

    def begin(self) -> list[int]:
        """The prompt: declarations, messages, and where the answer begins."""
        self.messages = list(self.environment.begin())
        prompt = xtml.render(self.messages, self.wanted)
        self._start_in = prompt.start_in
        return prompt.encode(self.tokenizer)

    def reply(self, written: Sequence[int]) -> list[int] | None:
        """What follows a turn of written tokens, or None once it is over."""
        heard = self._heard(read(written, self.tokenizer, self._start_in))
        if heard is None:
            self._finish()
        return heard

    def reward(self) -> float:
        """The shaped score, from -1 to 1; a limit may end it before the environment."""
        self._finish()
        assert self._reward is not None
        return self._reward

    def close(self) -> None:
        """Free what the environment holds."""
        self.environment.close()

    def _heard(self, answer: Message) -> list[int] | None:
        if answer.finish_reason in ("length", "abort"):
            return None
        heard = self.environment.reply(answer)
        self.messages.append(environment.said(answer, self.turns))
        self.turns += 1
        if heard is None:
            return None
        try:
            return self._continued(heard)
        except RequestError:
            return None

    def _continued(self, heard: Sequence[Chat]) -> list[int]:
        """The ids behind the last answer: what was heard, and where to go on."""
        wanted = self.wanted
        before = xtml.render(self.messages, _history(wanted)).segments
        self.messages += heard
        prompt = xtml.render(self.messages, wanted)
        assert prompt.segments[: len(before)] == before, "a history only grows"
        return segments.encode(prompt.segments[len(before) :], self.tokenizer)

    def _finish(self) -> None:
        if self._reward is None:
            try:
                self._reward = self.shape(self.environment)
            finally:
                self.environment.close()


def read(written: Sequence[int], tokenizer: Tokenizer, start_in: Channel) -> Message:
    """The message that tokens amount to; without an end of message it was cut."""
    pieces = xtml.Pieces(tokenizer)
    found = [piece for token in written for piece in pieces.push(token)]
    ended = bool(written) and written[-1] == end_id(tokenizer)
    return xtml.parse(
        [*found, *pieces.flush()], start_in, "stop" if ended else "length"
    )


def end_id(tokenizer: Tokenizer) -> int:
    """The token that ends a message. Raises: RequestError where there is none."""
    return tokenizer.special_id(segments.END)


def _history(wanted: RenderOptions) -> RenderOptions:
    """Without what holds for the next answer alone."""
    return dataclasses.replace(
        wanted,
        add_generation_prompt=False,
        tool_choice="auto",
        response_format={"type": "text"},
    )
