"""What an assistant can do in an office, as abilities over its state."""

from collections.abc import Callable, Iterable

from k3.envs.able import FLAG, TEXT, WHOLE, able
from k3.envs.assistant.world import Mail, World
from k3.envs.harness.task import Ability
from k3.errors import RequestError


def abilities(world: World, end_day: Callable[[], str]) -> dict[str, Ability]:
    """Mail, chat, notes and calendar, and the end of the day."""
    over = {"end_day": able("End the day.", end_day)}
    return _mail(world) | _chat(world) | _notes(world) | _calendar(world) | over


def _mail(world: World) -> dict[str, Ability]:
    def read(number: int) -> str:
        found = [m for m in world.mails if m.number == number]
        if not found:
            raise RequestError(f"a mail is needed: got {number}; list the mails")
        return f"{_head(found[0])}\n{found[0].text}"

    def send(to: str, subject: str, text: str) -> str:
        return f"sent as mail {world.mail(world.me, to, subject, text).number}"

    words = {"to": TEXT, "subject": TEXT, "text": TEXT}
    return {
        "mail_list": able("List all mails.", lambda: _lines(map(_head, world.mails))),
        "mail_read": able("Read a mail.", read, {"number": WHOLE}),
        "mail_send": able("Send a mail to one person.", send, words),
    }


def _chat(world: World) -> dict[str, Ability]:
    def read(person: str) -> str:
        between = (m for m in world.lines if person in (m.sender, m.to))
        return _lines(f"day {m.day}, {m.sender}: {m.text}" for m in between)

    def send(to: str, text: str) -> str:
        world.chat(world.me, to, text)
        return "sent"

    return {
        "chat_read": able("Read the chat with a person.", read, {"person": TEXT}),
        "chat_send": able(
            "Write to a person in the chat.", send, {"to": TEXT, "text": TEXT}
        ),
    }


def _notes(world: World) -> dict[str, Ability]:
    def read(title: str) -> str:
        if title not in world.notes:
            raise RequestError(f"a note is needed: got {title!r}; list the notes")
        return world.notes[title]

    def write(title: str, text: str) -> str:
        world.notes[title] = text
        return "written"

    return {
        "note_list": able("List the titles of all notes.", lambda: _lines(world.notes)),
        "note_read": able("Read a note.", read, {"title": TEXT}),
        "note_write": able(
            "Write a note, in place of one of the same title.",
            write,
            {"title": TEXT, "text": TEXT},
        ),
    }


def _calendar(world: World) -> dict[str, Ability]:
    def cancel(number: int) -> str:
        del world.meetings[world.meeting(number).number]
        return "cancelled"

    def answer(number: int, accept: bool) -> str:
        world.answer(number, accept)
        return "accepted, and in the calendar" if accept else "declined"

    def shown() -> str:
        ordered = sorted(world.meetings.values(), key=lambda m: (m.day, m.hour))
        return _lines(map(str, ordered))

    when = {"day": WHOLE, "hour": WHOLE}
    return {
        "calendar_list": able("List all meetings.", shown),
        "calendar_add": able(
            "Take an hour.",
            lambda title, day, hour: str(world.meet(title, day, hour)),
            {"title": TEXT, **when},
        ),
        "calendar_move": able(
            "Move a meeting.",
            lambda number, day, hour: str(world.move(number, day, hour)),
            {"number": WHOLE, **when},
        ),
        "calendar_cancel": able("Cancel a meeting.", cancel, {"number": WHOLE}),
        "invitation_answer": able(
            "Accept or decline an invitation.",
            answer,
            {"number": WHOLE, "accept": FLAG},
        ),
    }


def _head(mail: Mail) -> str:
    return f"{mail.number}: day {mail.day}, {mail.sender} to {mail.to}: {mail.subject}"


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines) or "nothing"
