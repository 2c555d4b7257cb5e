"""A task under a white-box harness: all of what it says and keeps is data."""

from k3.envs.harness.environment import Harnessed as Harnessed
from k3.envs.harness.harness import Context as Context
from k3.envs.harness.harness import Harness as Harness
from k3.envs.harness.harness import Memory as Memory
from k3.envs.harness.harness import Tool as Tool
from k3.envs.harness.harness import Words as Words
from k3.envs.harness.loading import PRESETS as PRESETS
from k3.envs.harness.loading import load as load
from k3.envs.harness.loading import of as of
from k3.envs.harness.loading import preset as preset
from k3.envs.harness.scripted import agent as agent
from k3.envs.harness.scripted import solver as solver
from k3.envs.harness.task import Ability as Ability
from k3.envs.harness.task import Asked as Asked
from k3.envs.harness.task import Content as Content
from k3.envs.harness.task import Steps as Steps
from k3.envs.harness.task import Task as Task

__all__ = [
    "PRESETS",
    "Ability",
    "Asked",
    "Content",
    "Context",
    "Harness",
    "Harnessed",
    "Memory",
    "Steps",
    "Task",
    "Tool",
    "Words",
    "agent",
    "load",
    "of",
    "preset",
    "solver",
]
