"""A mutant: a wrong edit of the source that ships, or weights loaded wrongly."""

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Edit:
    """Replace one piece of the text of a shipped function, while it lasts."""

    where: str
    old: str
    new: str

    @contextmanager
    def applied(self) -> Iterator[None]:
        module_name, _, path = self.where.partition(":")
        owner: Any = importlib.import_module(module_name)
        module = owner
        *classes, name = path.split(".")
        for part in classes:
            owner = getattr(owner, part)
        before = owner.__dict__[name]
        setattr(owner, name, self._edited(before, module))
        try:
            yield
        finally:
            setattr(owner, name, before)

    def _edited(self, function: Any, module: Any) -> Any:
        """The function with the edit, on the lines where it stands."""
        function = inspect.unwrap(function)
        text = textwrap.dedent(inspect.getsource(function))
        assert text.count(self.old) == 1, (
            f"{self.where} holds {self.old!r} {text.count(self.old)} times, not once: "
            "the shipped source has moved on, so move the mutant"
        )
        tree = ast.parse(text.replace(self.old, self.new))
        ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
        made: dict[str, Any] = {}
        code = compile(tree, function.__code__.co_filename, "exec")
        exec(code, module.__dict__, made)
        return made[function.__name__]


@dataclass(frozen=True)
class Load:
    """Change the weights by name, as a wrong loader would."""

    change: Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Mutant:
    """`at` is where the difference must first show, `on` the check that sees it."""

    name: str
    how: Edit | Load
    at: str
    on: str = "decoder"
