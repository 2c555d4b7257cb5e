"""A site: what is asked for, a page that does it, and what is checked of any page."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from k3.envs.web.scene import Scene, Seen

INKS = ("#1f3a5f", "#5f1f3a", "#1f5f3a", "#4a2d7a", "#7a4a00", "#00525a")
PAPERS = ("#f4f1ea", "#eef3f8", "#f3eef8", "#eef8f1", "#fff6e5")


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """One instance: the specification, the files of a right page, and the checks."""

    name: str
    spec: str
    files: Mapping[str, bytes]
    structure: tuple[Seen, ...]
    scenes: tuple[Scene, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """Colours and sizes; `text` says them, `css` does them."""

    ink: str
    paper: str
    bar: int
    button: int

    @classmethod
    def drawn(cls, rng: random.Random) -> "Look":
        """One of some hundreds."""
        return cls(
            ink=rng.choice(INKS),
            paper=rng.choice(PAPERS),
            bar=rng.randrange(56, 97, 4),
            button=rng.randrange(36, 57, 4),
        )

    @property
    def text(self) -> str:
        """The look in words."""
        return (
            f"Look: no margins around the page, background {self.paper}, text #222222, "
            "16px DejaVu Sans everywhere unless said otherwise. The title is an h1, "
            f"24px and bold, white, in a bar of {self.ink} across the top that is "
            f"{self.bar}px high, its line {self.bar}px high, 20px from the left. Below "
            "it everything stands 20px from the left and from the bar, one thing a "
            f"row, 12px between rows. Buttons are 160px by {self.button}px, {self.ink} "
            "with white text, no border, corners of 6px. Text boxes are 240px by 40px "
            "in all, border 2px solid of the same colour, white, 8px padding at the "
            "sides. The status is 28px in a line of 36px."
        )

    @property
    def css(self) -> str:
        """The look as a style sheet."""
        return f"""\
* {{ box-sizing: border-box; font-family: "DejaVu Sans"; font-size: 16px; }}
body {{ margin: 0; background: {self.paper}; color: #222222; }}
h1 {{ margin: 0; padding-left: 20px; height: {self.bar}px; line-height: {self.bar}px;
  font-size: 24px; background: {self.ink}; color: white; }}
main {{ display: flex; flex-direction: column; align-items: flex-start; gap: 12px;
  padding: 20px; }}
button {{ width: 160px; height: {self.button}px; border: 0; border-radius: 6px;
  background: {self.ink}; color: white; }}
input {{ width: 240px; height: 40px; padding: 0 8px; background: white;
  border: 2px solid {self.ink}; }}
[role=status] {{ font-size: 28px; line-height: 36px; }}
"""


def page(title: str, css: str, main: str, script: str) -> dict[str, bytes]:
    """The files of a page."""
    html = f"""\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title><style>
{css}</style></head>
<body><h1>{title}</h1><main>
{main}
</main><script>
{script}
</script></body></html>
"""
    return {"index.html": html.encode()}
