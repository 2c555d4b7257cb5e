"""The widget of the distillation reward: a log ratio, clipped."""

import numpy as np

from k3.graph import primitives as p
from k3.graph import rl as graph
from k3.graph.term import Block
from k3.reader.widgets.control import Control
from k3.reader.widgets.widget import Widget
from k3.spec import rl


def reward_graph() -> Block:
    """Eq. 15 on one token."""
    teacher, student = p.real("teacher", ""), p.real("student", "")
    outputs = {
        "reward": graph.reward(teacher, student, p.real("limit", "")),
        "unclipped": p.log(teacher / student),
    }
    return Block("mopd_reward", "Eq. 15: the reward of one token", outputs)


def rewarded(teacher, student, limit):  # type: ignore[no-untyped-def]
    """Eq. 15: clip(log(p_teacher / p_student), +-R)."""
    teacher, student = np.float64(teacher), np.float64(student)
    return {
        "reward": rl.reward(teacher, student, limit),
        "unclipped": np.log(teacher / student),
    }


REWARD = Widget(
    name="mopd-reward",
    title="The reward of one token",
    says="Zero iff student and teacher agree; the clip bounds what one token can say.",
    controls=(
        Control(
            name="teacher",
            value=0.7,
            label="teacher's probability",
            low=0.001,
            step=0.001,
        ),
        Control(
            name="student",
            value=0.08,
            label="student's probability",
            low=0.001,
            step=0.001,
        ),
        Control(name="limit", value=5.0, label="limit R", low=0.1, high=8.0, step=0.1),
    ),
    graphs={"": reward_graph},
    python=rewarded,
    names={"reward": "reward", "unclipped": "log ratio before the clip"},
)

WIDGETS = (REWARD,)
