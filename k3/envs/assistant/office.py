"""A multi-day world for an assistant: events by day, and one judgement at the end."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from k3.data.tasks.lot import Lot, Split
from k3.envs.assistant import desk, solve, stories
from k3.envs.assistant.story import NAMES, Cast, Check, Story
from k3.envs.assistant.world import World
from k3.envs.harness.task import Ability, Content, Steps

DOMAIN = "office"
DAYS = 5
RULES = """\
You look after the mail, chat, notes and calendar of {me} for {days} days. `end_day`
ends a day and tells what is new on the next; submit after day {days}.
- Accept an invitation if its hour is free, else decline it. Never have two meetings in
  one hour. Change no meeting that nobody asked you to change.
- Give who asks something the one thing asked for. Write to nobody else.
- What a note calls private goes only to whom the note names.
- Do what mails and chats to {me} ask for, unless these rules forbid it."""
OVER = "The last day is over; submit."


class Office:
    """Implements `Task`: a world, what happens in it by day, the checks of its end.

    The score is 0 if anything happened that must not, else the share of the duties
    that are done.
    """

    def __init__(self, told: Sequence[Story], world: World) -> None:
        self._stories, self.world, self._over = tuple(told), world, False

    @property
    def goal(self) -> str:
        """The rules, and what is new today."""
        rules = RULES.format(me=self.world.me, days=DAYS)
        return f"{rules}\n\n{self.news()}"

    @property
    def abilities(self) -> Mapping[str, Ability]:
        """What is on a desk, and the end of the day."""
        found = desk.abilities(self.world, self.end_day)
        return {
            name: dataclasses.replace(ability, act=self._open(ability.act))
            for name, ability in found.items()
        }

    def submit(self, answer: str) -> None:
        """Stop; days that were not lived are lost."""
        self._over = True

    def solve(self) -> Steps:
        """A perfect agent, which reads what it is told."""
        return solve.Secretary().live(self.goal, DAYS)

    def score(self) -> float:
        """0 if a ban is broken, else the share of duties that are done."""
        if self.broken():
            return 0.0
        duties = [duty for story in self._stories for duty in story.duties]
        return sum(duty.holds(self.world) for duty in duties) / len(duties)

    def broken(self) -> list[str]:
        """The names of bans that were broken."""
        own = [ban for story in self._stories for ban in story.bans]
        asked = {p: day for story in self._stories for p, day in story.asks}
        own.append(Check("no double booking", _no_double_booking))
        own.append(Check("written only to who asked", _only_asked(asked)))
        return [ban.name for ban in own if not ban.holds(self.world)]

    def undone(self) -> list[str]:
        """The names of duties that are not done."""
        duties = [duty for story in self._stories for duty in story.duties]
        return [duty.name for duty in duties if not duty.holds(self.world)]

    def fork(self) -> "Office":
        """The same office on the same day, on its own from here."""
        made = Office(self._stories, self.world.fork())
        made._over = self._over
        return made

    def close(self) -> None:
        """Nothing is held."""

    def end_day(self) -> str:
        """Let the next day begin; what is new on it."""
        if self.world.day == DAYS:
            self._over = True
            return OVER
        self.world.day += 1
        happen(self._stories, self.world)
        return self.news()

    def _open(self, act: Callable[..., Content]) -> Callable[..., Content]:
        """What is done while the days last, and no longer."""
        return lambda **given: OVER if self._over else act(**given)

    def news(self) -> str:
        """What others wrote today, and invitations without an answer."""
        world, me = self.world, self.world.me
        lines = [f"Day {world.day} begins."]
        for mail in world.mails:
            if mail.day == world.day and mail.to == me:
                lines.append(f"New mail {mail.number} of {mail.sender}: {mail.subject}")
        for line in world.lines:
            if line.day == world.day and line.to == me:
                lines.append(f"New in the chat with {line.sender}: {line.text}")
        for new in world.invitations.values():
            if new.answer is None:
                lines.append(
                    f"Invitation {new.number} of {new.sender}: {new.title}, "
                    f"day {new.day}, {new.hour}:00"
                )
        return "\n".join(lines)


def make(split: Split, index: int) -> Office:
    """A world of one story of each kind, that the split keeps."""
    lot = Lot.of(DOMAIN, split, index)
    while True:
        cast = Cast(rng=lot.rng)
        me = cast.person()
        more = [stories.moved] if lot.rng.random() < 0.5 else []
        told = [kind(cast) for kind in (*stories.STORIES, *more)]
        people = sorted(set(NAMES.split()) - set(cast.people) - {me})
        if lot.keeps(f"office:{me}:{','.join(people)}"):
            break
    world = World(me=me, people=tuple(people))
    happen(told, world, day=0)
    happen(told, world)
    return Office(told, world)


def happen(told: Sequence[Story], world: World, day: int | None = None) -> None:
    """Let the events of a day happen, that of the world if no other is given."""
    for story in told:
        for when, event in story.events:
            if when == (world.day if day is None else day):
                event(world)


def _no_double_booking(world: World) -> bool:
    taken = world.taken()
    return len(set(taken)) == len(taken)


def _only_asked(asked: dict[str, int]) -> Callable[[World], bool]:
    def holds(world: World) -> bool:
        return all(asked.get(m.to, DAYS + 1) <= m.day for m in world.said())

    return holds
