"""What a user does on a page, and what is to be seen then."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Step:
    """One act on the one thing of a role and a name; of role "text", by its text."""

    do: Literal["click", "fill", "press"]
    role: str
    name: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """So many things of a role and a name; if it is one, with this text.

    `painted`: its text must change pixels, so that neither hidden text nor a picture
    of text is taken for it.
    """

    role: str
    name: str = ""
    text: str | None = None
    count: int = 1
    painted: bool = True


@dataclass(frozen=True, slots=True)
class Scene:
    """Acts on a fresh page, and what is to be seen after them."""

    steps: tuple[Step, ...]
    seen: tuple[Seen, ...]
