"""Stop strings over text that arrives in pieces."""

from collections.abc import Sequence


class StopText:
    """Passes text on, holding back whatever may be the start of a stop string.

    Of several the one that is complete first counts, and of those that end together
    the longest: it does not matter in which pieces the text comes. `found` becomes
    True when a stop string has come; the text before it has been passed on by then,
    nothing of it or after it ever is.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = ""
        self.found = False

    def push(self, text: str) -> str:
        """The text that is safe to show after `text` has come."""
        if self.found:
            return ""
        self._held += text
        places = [
            (at + len(stop), at)
            for stop in self._stops
            if (at := self._held.find(stop)) >= 0
        ]
        self.found = bool(places)
        before = min(places)[1] if places else len(self._held) - self._open()
        return self._release(before)

    def flush(self) -> str:
        """What was held back, once no more text comes."""
        return "" if self.found else self._release(len(self._held))

    def _release(self, length: int) -> str:
        shown, self._held = self._held[:length], self._held[length:]
        return shown

    def _open(self) -> int:
        """How much of the end may still grow into a stop string."""
        longest = max((len(stop) for stop in self._stops), default=1) - 1
        for length in range(min(longest, len(self._held)), 0, -1):
            if any(stop.startswith(self._held[-length:]) for stop in self._stops):
                return length
        return 0
