"""A task under a harness: an environment."""

from collections.abc import Sequence

from k3.data.xtml import Message, RenderOptions
from k3.envs import environment
from k3.envs.environment import Agent, Chat
from k3.envs.harness import context, scripted, wording
from k3.envs.harness.harness import Harness
from k3.envs.harness.surface import REMEMBER, Surface
from k3.envs.harness.task import SUBMIT, Ability, Asked, Content, Task, worded

NOTED = "The notes are kept."


class Harnessed:
    """Implements `Environment`: the harness's words around the task's abilities.

    `notes` are what an earlier conversation left in the file of notes; `notes` of
    this object are what this one leaves. An effort of None means no thinking.
    """

    def __init__(
        self,
        task: Task,
        harness: Harness,
        *,
        notes: str = "",
        effort: str | None = "max",
    ) -> None:
        self.task, self.harness, self.notes, self.effort = task, harness, notes, effort
        abilities = dict(task.abilities)
        if SUBMIT in abilities or REMEMBER in abilities:
            raise ValueError("submit and remember are the harness's own")
        self._abilities = abilities | {SUBMIT: self._submitting()}
        if harness.memory is not None:
            self._abilities[REMEMBER] = self._remembering()
        self.surface = Surface(harness, self._abilities)
        self._turn, self._nudged, self._over = 0, 0, False
        self._solver: Agent | None = None

    @property
    def wanted(self) -> RenderOptions:
        """The tools, where calls are native; the effort."""
        native = self.harness.format == "native"
        return RenderOptions(
            tools=self.surface.schemas if native else (),
            thinking=self.effort is not None,
            thinking_effort=self.effort,
        )

    def begin(self) -> list[Chat]:
        """What the harness says of itself, and the goal."""
        system = self.harness.system.replace("{tools}", self.surface.listing)
        system = system.replace("{memory}", self._noted()).strip()
        first: list[Chat] = [{"role": "system", "content": system}] if system else []
        return [*first, {"role": "user", "content": self.task.goal}]

    def reply(self, message: Message) -> list[Chat] | None:
        """Results of the calls, or a nudge where there is nothing to do."""
        turn, self._turn = self._turn, self._turn + 1
        said = wording.read(message, self.harness)
        heard = self._heard(turn, said, message)
        self._over |= self._turn >= self.harness.turns
        return None if self._over else heard

    def score(self) -> float:
        """The task's."""
        return self.task.score()

    def close(self) -> None:
        """Free what the task holds."""
        self.task.close()

    def shown(self, messages: Sequence[Chat]) -> list[Chat]:
        """What the model is shown of these messages, by the rule of the harness."""
        return context.shown(messages, self.harness, self._noted())

    def through(self, agent: Agent) -> Agent:
        """The agent, who sees no more than the harness shows."""
        return lambda messages: agent(self.shown(messages))

    def solve(self, messages: Sequence[Chat]) -> Message:
        """The next answer of the task's perfect agent: what a cold start shows."""
        if self._solver is None:
            self._solver = scripted.solver(self)
        return self._solver(messages)

    def _heard(self, turn: int, said: wording.Said, message: Message) -> list[Chat]:
        if said.calls:
            contents = [self._do(*call) for call in said.calls[: self.harness.calls]]
            left = len(said.calls) - len(contents)
            most = f"Error: {self.harness.calls} calls an answer at most; not done."
            return self._results(turn, [*contents, *[most] * left])
        if said.answer is not None and self.harness.answer == "text":
            self._over = True
            self.task.submit(said.answer)
            return []
        self._nudged += 1
        self._over |= self._nudged > self.harness.nudges
        slip = said.slip or self.harness.words.nudge
        # A call that was cut is still a call, and each of these has a result.
        cut = len(message.tool_calls)
        if self.harness.format == "native" and cut:
            return self._results(turn, [slip] * cut)
        return [{"role": "user", "content": slip}]

    def _do(self, name: str, given: str) -> Content:
        if self._over:
            return "Error: the answer is given; nothing more is done."
        meant = self.surface.meant(name, given)
        return meant if isinstance(meant, str) else self._act(meant)

    def _act(self, meant: Asked) -> Content:
        content = self.surface.abilities[meant[0]].act(**meant[1])
        most, said = self.harness.output_chars, self.harness.words.cut
        return worded(content, lambda text: cut(text, most, said))

    def _results(self, turn: int, contents: Sequence[Content]) -> list[Chat]:
        form = self.harness.words.result
        said = [
            worded(content, lambda text: form.replace("{result}", _whole(text)))
            for content in contents
        ]
        if self.harness.format == "native":
            named = environment.results(turn, [""] * len(said))
            pairs = zip(named, said, strict=True)
            return [{**message, "content": content} for message, content in pairs]
        return [{"role": "user", "content": content} for content in said]

    def _noted(self) -> str:
        memory = self.harness.memory
        if memory is None or not self.notes:
            return ""
        return f"{memory.file}:\n{self.notes}"

    def _submitting(self) -> Ability:
        def submit(answer: str = "") -> str:
            self._over = True
            self.task.submit(answer)
            return "The answer is taken."

        return Ability(
            words="Give the answer; this ends the work.",
            properties={"answer": {"type": "string"}},
            act=submit,
            optional=frozenset({"answer"}),
        )

    def _remembering(self) -> Ability:
        memory = self.harness.memory
        assert memory is not None, "notes need a memory"

        def remember(notes: str) -> str:
            if len(notes) > memory.most_chars:
                return (
                    f"Error: {memory.file} holds at most {memory.most_chars} "
                    f"characters: got {len(notes)}; shorten it."
                )
            self.notes = notes
            return NOTED

        return Ability(
            words=f"Write {memory.file} anew; it is shown when older turns are not.",
            properties={"notes": {"type": "string"}},
            act=remember,
        )


def cut(content: str, most: int, said: str) -> str:
    """A text of at most about `most` characters: its beginning and its end."""
    if len(content) <= most:
        return content
    half = most // 2
    words = said.replace("{left_out}", str(len(content) - 2 * half))
    return f"{content[:half]}\n{words}\n{content[-half:]}"


def _whole(text: str) -> str:
    """A text that can be encoded: half of a surrogate pair cannot."""
    return text.encode("utf-8", "replace").decode()
