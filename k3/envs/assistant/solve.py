"""A perfect assistant: it knows the forms of the sentences, and reads all else."""

import re
from collections.abc import Generator
from typing import Any, TypeVar

from k3.envs.harness.task import Asked, Content, Steps, text

T = TypeVar("T")
Part = Generator[Asked, Content, T]
_MEETING = re.compile(r"(\d+): day (\d+), (\d+):00, (\w+)")
_INVITATION = re.compile(r"Invitation (\d+) .*day (\d+), (\d+):00")


class Secretary:
    """Lives the days; remembers who must not be written to, and who is owed a word."""

    def __init__(self) -> None:
        self._shut: set[str] = set()
        self._owed: list[tuple[str, str]] = []
        self._changed: dict[str, str] = {}

    def live(self, news: str, days: int) -> Steps:
        """Do what a day brings, and end it."""
        for _ in range(days):
            for number, sender in re.findall(r"New mail (\d+) of (\w+)", news):
                yield from self._mail(int(number), sender)
            self._owed += re.findall(r"New in the chat with (\w+): (.*)", news)
            yield from self._answer()
            yield from self._invitations(news)
            news = yield from _do("end_day")
        return ""

    def _mail(self, number: int, sender: str) -> Part[None]:
        said = yield from _do("mail_read", number=number)
        if found := re.search(r"move (\w+) to day (\d+) at (\d+):00", said):
            title, day, hour = found.groups()
            yield from _move(sender, title, int(day), int(hour))
        elif found := re.search(r"The meeting (\w+) is cancelled", said):
            meetings = yield from _calendar()
            yield from _do("calendar_cancel", number=meetings[found[1]][0])
        elif found := re.search(r"now on (\w+) meets in room (\w+)", said):
            self._changed[found[1]] = found[2]
        elif found := re.search(r"Do not write to (\w+) before", said):
            self._shut.add(found[1])
        elif found := re.search(r"You may write to (\w+) now", said):
            self._shut.discard(found[1])

    def _answer(self) -> Part[None]:
        now = [owed for owed in self._owed if owed[0] not in self._shut]
        for sender, asked in now:
            self._owed.remove((sender, asked))
            fact = yield from self._fact(asked)
            yield from _do("chat_send", to=sender, text=f"It is {fact}.")

    def _fact(self, asked: str) -> Part[str]:
        if "safe" in asked:
            note = yield from _do("note_read", title="safe")
            return note.rpartition(" ")[2].strip(".")
        project = asked.split()[-2]
        if project in self._changed:
            return self._changed[project]
        said = ""
        for title in (project, "rooms"):
            said += yield from _do("note_read", title=title)
        found = re.search(rf"{project} meets in room (\w+)", said)
        return found[1] if found else ""

    def _invitations(self, news: str) -> Part[None]:
        for number, day, hour in _INVITATION.findall(news):
            meetings = yield from _calendar()
            taken = {when[1:] for when in meetings.values()}
            free = (int(day), int(hour)) not in taken
            yield from _do("invitation_answer", number=int(number), accept=free)


def _move(sender: str, title: str, day: int, hour: int) -> Part[None]:
    """Move a meeting to the first free hour, and say which it is."""
    meetings = yield from _calendar()
    taken = {when[1:] for name, when in meetings.items() if name != title}
    while (day, hour) in taken:
        hour += 1
    yield from _do("calendar_move", number=meetings[title][0], day=day, hour=hour)
    said = f"It is at {hour}:00."
    yield from _do("mail_send", to=sender, subject=title, text=said)


def _calendar() -> Part[dict[str, tuple[int, int, int]]]:
    """Number, day and hour of each meeting by its title."""
    said = yield from _do("calendar_list")
    return {t: (int(n), int(d), int(h)) for n, d, h, t in _MEETING.findall(said)}


def _do(ability: str, **given: Any) -> Part[str]:
    return text((yield ability, given))
