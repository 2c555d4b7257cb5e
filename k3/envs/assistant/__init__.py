"""An assistant in an office over several days: mail, chat, notes, calendar."""

from k3.envs.assistant.office import Office as Office
from k3.envs.assistant.office import make as make

__all__ = ["Office", "make"]
