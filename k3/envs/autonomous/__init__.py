"""Long assignments: open diagnostics, hidden final checks, limited submissions."""

from k3.envs.autonomous.task import Autonomous as Autonomous
from k3.envs.autonomous.task import make as make

__all__ = ["Autonomous", "make"]
