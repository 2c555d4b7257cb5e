"""The tools of a harness over the abilities of a task: declared, and meant."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from k3.envs.harness import arguments
from k3.envs.harness.harness import Harness, Tool
from k3.envs.harness.task import SUBMIT, Ability, Asked
from k3.errors import RequestError

REMEMBER = "remember"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """A tool as a model sees it, and how its arguments become an ability's."""

    name: str
    words: str
    properties: Mapping[str, Mapping[str, Any]]
    required: tuple[str, ...]
    tool: Tool

    @property
    def schema(self) -> dict[str, Any]:
        """Its declaration, in the form of the OpenAI API."""
        parameters = {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }
        function = {"name": self.name, "description": self.words}
        return {"type": "function", "function": {**function, "parameters": parameters}}

    @property
    def line(self) -> str:
        """The tool on one line, for a system message."""
        given = [
            f"{key}: {schema.get('type', 'any')}"
            + ("" if key in self.required else ", optional")
            for key, schema in self.properties.items()
        ]
        return f"{self.name}({'; '.join(given)}): {self.words}"


class Surface:
    """What a harness declares of these abilities; `submit` and notes come to them."""

    def __init__(self, harness: Harness, abilities: Mapping[str, Ability]) -> None:
        self.harness = harness
        self.abilities = {
            name: ability
            for name, ability in abilities.items()
            if name not in harness.without
        }
        self.commands = self._commands()
        self.shown = {tool.name: self._show(tool) for tool in self._offered()}

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """All declarations."""
        return [shown.schema for shown in self.shown.values()]

    @property
    def listing(self) -> str:
        """The tools, or the commands where a line takes them, a line each."""
        if self.harness.format == "fenced":
            return self._manual()
        return "\n".join(shown.line for shown in self.shown.values())

    def meant(self, name: str, given: str) -> Asked | str:
        """What a call asks for; or a sentence that says what is wrong with it."""
        if name not in self.shown:
            return (
                f"Error: a tool is one of {', '.join(self.shown)}: got {name!r}; "
                "call one of these."
            )
        shown = self.shown[name]
        found = arguments.parsed(given)
        if isinstance(found, str):
            return found
        wrong = arguments.misfit(found, shown.properties, shown.required)
        if wrong:
            return f"Error: {name}: {wrong}."
        if shown.tool.commands:
            return self.command(str(next(iter(found.values()))))
        names = shown.tool.arguments
        meant = {names.get(key, key): value for key, value in found.items()}
        return shown.tool.ability, meant | dict(shown.tool.fixed)

    def call(
        self, ability: str, given: Mapping[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        """The tool that uses an ability, and its arguments: the inverse of `meant`."""
        for shown in self.shown.values():
            tool = shown.tool
            if tool.ability == ability and not tool.commands and not tool.fixed:
                called = {theirs: own for own, theirs in tool.arguments.items()}
                return shown.name, {called.get(k, k): v for k, v in given.items()}
        line = self.harness.line
        words = [word for word, name in self.commands.items() if name == ability]
        if line is None or not (words or line.ability == ability):
            raise RequestError(
                f"harness {self.harness.name!r} must have a tool for {ability!r}: got "
                "none; choose another harness"
            )
        parts = [*words[:1], *(str(value) for value in given.values())]
        return line.name, {next(iter(line.arguments), "command"): " ".join(parts)}

    def command(self, line: str) -> Asked | str:
        """What a line asks for: by its first word, else of the tool's own ability."""
        stripped = line.strip()
        word, rest = [*stripped.split(None, 1), "", ""][:2]
        if word in self.commands:
            return self._arguments(word, rest)
        tool = self.harness.line
        assert tool is not None, "only a tool with commands takes lines"
        if tool.ability in self.abilities:
            return tool.ability, {
                next(iter(self.abilities[tool.ability].properties)): line
            }
        return (
            f"Error: a line begins with one of {', '.join(self.commands)}: got "
            f"{word!r}; there are no other programs."
        )

    def _arguments(self, word: str, rest: str) -> Asked | str:
        """The words behind a command; the last of its arguments is all that is left."""
        ability = self.abilities[self.commands[word]]
        parts = rest.split(None, max(0, len(ability.properties) - 1))
        given: dict[str, Any] = {}
        for (key, schema), part in zip(ability.properties.items(), parts, strict=False):
            given[key] = arguments.typed(part, schema)
        needed = tuple(k for k in ability.properties if k not in ability.optional)
        wrong = arguments.misfit(given, ability.properties, needed)
        return f"Error: {word}: {wrong}." if wrong else (self.commands[word], given)

    def _offered(self) -> list[Tool]:
        """The harness's tools for what can be done, and one for each ability left."""
        found = [
            tool
            for tool in self.harness.tools
            if tool.commands or tool.ability in self.abilities
        ]
        if self.harness.memory is not None:
            found.append(Tool(name=self.harness.memory.tool, ability=REMEMBER))
        if self.harness.rest != "tools":
            return found
        served = {tool.ability for tool in found} | set(self.commands.values())
        served |= {SUBMIT} if self.harness.answer == "text" else set()
        left = [name for name in self.abilities if name not in served]
        return found + [Tool(name=name, ability=name) for name in left]

    def _commands(self) -> dict[str, str]:
        line = self.harness.line
        if line is None:
            return {}
        found = {w: name for w, name in line.commands.items() if name in self.abilities}
        if self.harness.rest == "commands":
            served = {*found.values(), line.ability, REMEMBER}
            found |= {name: name for name in self.abilities if name not in served}
        return found

    def _show(self, tool: Tool) -> Shown:
        if tool.commands:
            key = next(iter(tool.arguments), "command")
            runs = tool.words if tool.ability in self.abilities else "Give a command."
            words = f"{runs}\nCommands:\n{self._manual()}".strip()
            line = {"type": "string", "description": tool.says.get(key, "The line.")}
            return Shown(
                name=tool.name,
                words=words,
                properties={key: line},
                required=(key,),
                tool=tool,
            )
        ability = self.abilities[tool.ability]
        called = {theirs: own for own, theirs in tool.arguments.items()}
        properties, required = {}, []
        for key, schema in ability.properties.items():
            if key in tool.fixed:
                continue
            own = called.get(key, key)
            says = {"description": tool.says[own]} if own in tool.says else {}
            properties[own] = {**schema, **says}
            if key not in ability.optional:
                required.append(own)
        return Shown(
            name=tool.name,
            words=tool.words or ability.words,
            properties=properties,
            required=tuple(required),
            tool=tool,
        )

    def _manual(self) -> str:
        """The commands of a line with their arguments, a line each."""
        lines = []
        for word, name in self.commands.items():
            ability = self.abilities[name]
            given = [
                f"[{key.upper()}]" if key in ability.optional else key.upper()
                for key in ability.properties
            ]
            lines.append(f"{' '.join([word, *given])}: {ability.words}")
        return "\n".join(lines)
