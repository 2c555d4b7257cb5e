"""Judging in sandboxes made for it, when what is judged may end them."""

from collections.abc import Callable
from typing import TypeVar

from k3.envs.sandbox import Sandbox
from k3.errors import CheckpointError, RequestError

TRIES = 10
T = TypeVar("T")


class Killed(RequestError):
    """What is judged ends every sandbox that it is run in."""


def judged(made: Callable[[], Sandbox], act: Callable[[Sandbox], T]) -> T:
    """Do something in a sandbox of its own; one that is lost is made anew.

    Raises: Killed where each is lost, and one that is given nothing to do is not;
    CheckpointError where that one is lost too; RequestError for all else.
    """
    for _ in range(TRIES):
        box = made()
        try:
            return act(box)
        except RequestError:
            if box.alive:
                raise
        finally:
            box.destroy()
    if _stands(made()):
        raise Killed(
            f"what is judged must leave its sandbox alive: it ended {TRIES} in a row; "
            "it does not count"
        )
    raise CheckpointError(
        f"a sandbox must stay alive to judge: lost {TRIES} in a row, and one more in "
        "which nothing ran; look at what ends them"
    )


def _stands(box: Sandbox) -> bool:
    """Whether a sandbox lives through a command that does nothing."""
    try:
        return box.run(["true"]).code == 0
    except RequestError:
        return False
    finally:
        box.destroy()
