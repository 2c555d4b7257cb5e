"""The state of an office: a day, mail, chat, notes, meetings, invitations."""

import copy
from dataclasses import dataclass, field

from k3.errors import RequestError

FIRST_HOUR, LAST_HOUR = 9, 17
LAST_DAY = 20
"""Meetings may lie behind the days that are played."""


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail; the assistant writes and reads those of `me`."""

    number: int
    day: int
    sender: str
    to: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the chat between two people."""

    day: int
    sender: str
    to: str
    text: str


@dataclass(slots=True)
class Meeting:
    """An hour of a day that is taken."""

    number: int
    title: str
    day: int
    hour: int

    def __str__(self) -> str:
        return f"{self.number}: day {self.day}, {self.hour}:00, {self.title}"


@dataclass(slots=True)
class Invitation:
    """A meeting that somebody proposes; `answer` is None until it is given."""

    number: int
    sender: str
    title: str
    day: int
    hour: int
    answer: bool | None = None


@dataclass(kw_only=True, slots=True)
class World:
    """All that is known on a day; a fork of it shares nothing with it."""

    me: str
    people: tuple[str, ...]
    day: int = 1
    mails: list[Mail] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    meetings: dict[int, Meeting] = field(default_factory=dict)
    invitations: dict[int, Invitation] = field(default_factory=dict)
    last: int = 0

    def fork(self) -> "World":
        """A copy that may be judged, or go another way."""
        return copy.deepcopy(self)

    def number(self) -> int:
        """The next number; no two things of a world have the same."""
        self.last += 1
        return self.last

    def mail(self, sender: str, to: str, subject: str, text: str) -> Mail:
        """Send a mail. Raises: RequestError for people who are not here."""
        self._know(sender, to)
        made = Mail(self.number(), self.day, sender, to, subject, text)
        self.mails.append(made)
        return made

    def chat(self, sender: str, to: str, text: str) -> None:
        """Write a line. Raises: RequestError for people who are not here."""
        self._know(sender, to)
        self.lines.append(Line(self.day, sender, to, text))

    def meet(self, title: str, day: int, hour: int) -> Meeting:
        """Take an hour, even one that is taken. Raises: RequestError."""
        self._open(day, hour)
        number = self.number()
        self.meetings[number] = Meeting(number, title, day, hour)
        return self.meetings[number]

    def move(self, number: int, day: int, hour: int) -> Meeting:
        """Put a meeting elsewhere. Raises: RequestError."""
        self._open(day, hour)
        found = self.meeting(number)
        found.day, found.hour = day, hour
        return found

    def invite(self, sender: str, title: str, day: int, hour: int) -> Invitation:
        """Somebody proposes a meeting."""
        number = self.number()
        self.invitations[number] = Invitation(number, sender, title, day, hour)
        return self.invitations[number]

    def answer(self, number: int, accept: bool) -> Invitation:
        """Accept, which takes the hour, or decline; once. Raises: RequestError."""
        found = self.invitations.get(number)
        if found is None or found.answer is not None:
            raise RequestError(
                f"an open invitation is needed: got {number}; look at the new ones"
            )
        found.answer = accept
        if accept:
            self.meet(found.title, found.day, found.hour)
        return found

    def meeting(self, number: int) -> Meeting:
        """The meeting of a number. Raises: RequestError."""
        if number not in self.meetings:
            raise RequestError(
                f"a meeting of the calendar is needed: got {number}; list the calendar"
            )
        return self.meetings[number]

    def said(self, to: str | None = None) -> list[Mail | Line]:
        """What the assistant wrote, to one person or to all, oldest first by kind."""
        both: list[Mail | Line] = [*self.mails, *self.lines]
        wrote = [m for m in both if m.sender == self.me]
        return [m for m in wrote if to in (None, m.to)]

    def taken(self) -> list[tuple[int, int]]:
        """Day and hour of each meeting, sorted; twice where two meet."""
        return sorted((m.day, m.hour) for m in self.meetings.values())

    def _know(self, *names: str) -> None:
        for name in names:
            if name != self.me and name not in self.people:
                raise RequestError(
                    f"a person is one of {', '.join(self.people)}: got {name!r}; "
                    "choose one"
                )

    def _open(self, day: int, hour: int) -> None:
        if not self.day <= day <= LAST_DAY or not FIRST_HOUR <= hour <= LAST_HOUR:
            raise RequestError(
                f"a meeting is on day {self.day} to {LAST_DAY}, at hour {FIRST_HOUR} "
                f"to {LAST_HOUR}: got day {day}, hour {hour}; choose another"
            )
