"""An agent for environments over anything that answers conversations."""

from collections.abc import Sequence
from dataclasses import replace

from k3.data.xtml import Message, RenderOptions
from k3.envs.environment import Chat
from k3.post import context
from k3.post.speaker import ContextFull, Sampling, Speaker, Usage

# Turns of an episode are sampled from seeds that far apart.
SEED_STEP = 1_000_003


class SpeakingAgent:
    """An `Agent` for one episode: it asks a speaker, and counts what that cost.

    Where the context is full the policy shortens what the speaker is shown, step by
    step and for the rest of the episode; the environment's own messages stay whole.
    """

    def __init__(
        self,
        speaker: Speaker,
        wanted: RenderOptions,
        sampling: Sampling,
        policy: str = "end",
    ) -> None:
        self.speaker, self.wanted, self.sampling = speaker, wanted, sampling
        self.usage, self.turns, self.shortened = Usage(), 0, 0
        self._policy = context.named(policy)
        self._opening: int | None = None

    def __call__(self, messages: Sequence[Chat]) -> Message:
        """The next answer.

        Raises: ContextFull where nothing may be taken away; RequestError.
        """
        if self._opening is None:
            self._opening = len(messages)
        seed = (self.sampling.seed + SEED_STEP * self.turns) % 2**63
        sampling = replace(self.sampling, seed=seed)
        shown = self._shown(messages)
        while True:
            try:
                spoken = self.speaker.answer(shown, self.wanted, sampling)
                break
            except ContextFull:
                shorter = self._policy(shown, self._opening)
                if shorter is None:
                    raise
                shown, self.shortened = shorter, self.shortened + 1
        self.usage, self.turns = self.usage + spoken.usage, self.turns + 1
        return spoken.message

    def _shown(self, messages: Sequence[Chat]) -> Sequence[Chat]:
        """The messages, as many steps shorter as they were at the last answer."""
        assert self._opening is not None
        shown = messages
        for _ in range(self.shortened):
            shown = self._policy(shown, self._opening) or shown
        return shown
