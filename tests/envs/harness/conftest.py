"""A task of three abilities that writes down what is done to it."""

import pytest

from k3.envs.harness import Ability


class Errand:
    """Fetch a word by opening the right drawer, then say it."""

    goal = "Which word is in drawer 3?"

    def __init__(self):
        self.done, self.answer, self.closed = [], None, 0
        self.abilities = {
            "open": Ability(
                words="Open a drawer.",
                properties={
                    "drawer": {"type": "integer"},
                    "side": {"type": "string", "enum": ["left", "right"]},
                },
                act=self.open,
                optional=frozenset({"side"}),
            ),
            "run": Ability(
                words="Run a line.",
                properties={"command": {"type": "string"}},
                act=lambda command: f"ran {command}",
            ),
            "look": Ability(words="Look around.", properties={}, act=self.look),
        }

    def open(self, drawer, side="left"):
        self.done.append((drawer, side))
        return "kado" if drawer == 3 else "nothing " * 40

    def look(self):
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}
        return [{"type": "text", "text": "six drawers"}, picture]

    def submit(self, answer):
        self.answer = answer

    def solve(self):
        yield "look", {}
        found = yield "open", {"drawer": 3}
        return found

    def score(self):
        return float(self.answer == "kado" and (3, "left") in self.done)

    def close(self):
        self.closed += 1


@pytest.fixture
def errand():
    return Errand()
