"""How many ranks share what, and the groups they talk in.

Ranks lie in a box of four axes: pipeline, expert, data and, fastest, context. All
four multiply. Expert ranks read rows of their own, as data ranks do; context ranks
share a row and split its tokens; pipeline ranks share a row and split the layers.
"""

from dataclasses import dataclass

from k3.config import TextConfig, settings
from k3.errors import ConfigError, RequestError

AXES = ("pipeline", "expert", "data", "context")


@dataclass(frozen=True, kw_only=True, slots=True)
class Mesh:
    """The number of ranks along each axis; one of each is a single process."""

    data: int = 1
    pipeline: int = 1
    expert: int = 1
    context: int = 1

    def __post_init__(self) -> None:
        """Refuse an axis without ranks."""
        if wrong := settings.wrong(self, _RULES, show=repr):
            raise ConfigError("; ".join(wrong))

    @classmethod
    def of(cls, text: str) -> "Mesh":
        """Read "data=2,pipeline=2"; an axis that is not named has one rank."""
        sizes: dict[str, int] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, size = part.partition("=")
            if name not in AXES or name in sizes or not size.isdecimal():
                raise RequestError(
                    "parallel names axes once each, such as data=2,pipeline=2, out of "
                    f"{', '.join(AXES)}: got {part!r:.80}"
                )
            sizes[name] = int(size[:9])
        return cls(**sizes)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Sizes in the order of AXES."""
        return self.pipeline, self.expert, self.data, self.context

    @property
    def ranks(self) -> int:
        """All ranks."""
        return self.pipeline * self.trunk

    @property
    def trunk(self) -> int:
        """Ranks of one pipeline stage: they share the weights outside experts."""
        return self.expert * self.replica

    @property
    def replica(self) -> int:
        """Ranks of one stage that share the same experts."""
        return self.data * self.context

    @property
    def rows(self) -> int:
        """Ranks of one stage that read different rows."""
        return self.expert * self.data

    def place(self, rank: int) -> dict[str, int]:
        """Where a rank lies: its coordinate on every axis."""
        found = {}
        for name, size in zip(reversed(AXES), reversed(self.shape), strict=True):
            rank, found[name] = divmod(rank, size)
        return found

    def rows_index(self, rank: int) -> int:
        """Which of the `rows` a rank reads."""
        at = self.place(rank)
        return at["expert"] * self.data + at["data"]

    def check(self, config: TextConfig, world: int) -> "Mesh":
        """Return self if it fits a model and so many processes; else ConfigError."""
        wrong = []
        if self.ranks != world:
            wrong.append(
                f"parallel must use every process: got {self} = {self.ranks} ranks of "
                f"{world}; start {self.ranks}, or change an axis"
            )
        if config.num_experts % self.expert:
            wrong.append(
                f"expert must divide num_experts: got {self.expert} for "
                f"{config.num_experts}"
            )
        if self.pipeline > config.num_hidden_layers:
            wrong.append(
                "pipeline must be at most num_hidden_layers: got "
                f"{self.pipeline} for {config.num_hidden_layers}"
            )
        if wrong:
            raise ConfigError("; ".join(wrong))
        return self

    def __str__(self) -> str:
        """As `of` reads it."""
        return ",".join(f"{name}={getattr(self, name)}" for name in AXES)


_RULES: list[settings.Rule] = [
    (
        axis,
        "a whole number of at least 1",
        lambda size: type(size) is int and size >= 1,
    )
    for axis in settings.names(Mesh, but=())
]
