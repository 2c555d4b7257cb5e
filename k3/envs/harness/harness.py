"""A harness as data: which tools, how they are called, shown, cut and forgotten."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from k3.errors import ConfigError

FORMATS = ("native", "react", "fenced")
ANSWERS = ("text", "tool")
RESTS = ("tools", "commands", "none")
DROPS = ("reasoning", "results", "turns")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A tool by the ability that it is for; all names but `ability` are the tool's.

    `arguments` maps its arguments to the ability's where they differ, `says` describes
    them, `fixed` sets some of the ability's. With `commands` its one argument is a
    line whose first word may be a command for an ability; else the line is for
    `ability`.
    """

    name: str
    ability: str
    words: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    says: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, str | int] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What is left out of what a model is shown of its conversation.

    `always` says what is dropped from all but the last turn, `over` what is dropped,
    in this order and the oldest first, while there are more than `most_chars`; the
    last `keep_turns` turns stay.
    """

    most_chars: int = 200_000
    keep_turns: int = 2
    always: tuple[str, ...] = ()
    over: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """A file of notes that outlives the context, and the tool that writes it."""

    tool: str
    file: str = "MEMORY.md"
    most_chars: int = 4_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """The words of calls in text, and what is said around results and slips."""

    thought: str = "Thought:"
    action: str = "Action:"
    given: str = "Action Input:"
    heard: str = "Observation:"
    answer: str = "Final Answer:"
    fence: str = "bash"
    result: str = "{result}"
    nudge: str = "Go on: use a tool, or end with the answer as you were told."
    cut: str = "[... {left_out} characters left out ...]"
    dropped: str = "[a result of {left_out} characters, no longer shown]"
    forgotten: str = "[{turns} earlier turns are no longer shown]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Harness:
    """All of it. `system` may hold {tools} and {memory}.

    `format` says how calls are written, `answer` how the answer is given, `rest` what
    becomes of abilities that no tool is for; those of `without` are not offered.
    """

    name: str
    system: str = ""
    format: str = "native"
    answer: str = "text"
    tools: tuple[Tool, ...] = ()
    rest: str = "tools"
    without: tuple[str, ...] = ()
    words: Words = field(default_factory=Words)
    context: Context = field(default_factory=Context)
    memory: Memory | None = None
    output_chars: int = 8_000
    turns: int = 40
    calls: int = 8
    nudges: int = 2

    def __post_init__(self) -> None:
        wrong = [*self._choices(), *self._sizes(), *self._tools()]
        if wrong:
            raise ConfigError(f"harness {self.name!r}: " + "; ".join(wrong))

    @property
    def line(self) -> Tool | None:
        """The tool that takes a line of commands, if there is one."""
        return next((tool for tool in self.tools if tool.commands), None)

    def _choices(self) -> list[str]:
        chosen = [("format", self.format, FORMATS), ("answer", self.answer, ANSWERS)]
        chosen.append(("rest", self.rest, RESTS))
        chosen += [("over", drop, DROPS) for drop in self.context.over]
        chosen += [("always", drop, DROPS[:2]) for drop in self.context.always]
        return [
            f"{name} must be one of {', '.join(allowed)}: got {value!r}; choose one"
            for name, value, allowed in chosen
            if value not in allowed
        ]

    def _sizes(self) -> list[str]:
        least = {"output_chars": 100, "turns": 1, "calls": 1, "nudges": 0}
        found = {name: getattr(self, name) for name in least}
        least |= {"most_chars": 1000, "keep_turns": 1}
        found |= {name: getattr(self.context, name) for name in list(least)[-2:]}
        return [
            f"{name} must be a whole number of at least {least[name]}: got {value!r}"
            for name, value in found.items()
            if type(value) is not int or value < least[name]
        ]

    def _tools(self) -> list[str]:
        names = [tool.name for tool in self.tools]
        if self.memory is not None:
            names.append(self.memory.tool)
        wrong = []
        if len(set(names)) < len(names):
            wrong.append(f"tools must have names of their own: got {', '.join(names)}")
        if self.rest == "commands" and self.line is None:
            wrong.append("rest 'commands' needs a tool with commands: got none")
        if self.format == "fenced" and self.line is None:
            wrong.append("format 'fenced' needs a tool with commands: got none")
        if self.format != "native" and "{tools}" not in self.system:
            wrong.append("system must say {tools} where calls are written in text")
        if self.words.result.count("{result}") != 1:
            wrong.append(
                "result must say {result} once: got " + repr(self.words.result)
            )
        return wrong
