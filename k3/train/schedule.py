"""Learning rate over the steps of a run."""

import math

NAMES = ("cosine", "trapezoid")


def factor(name: str, step: int, steps: int, warmup: float, decay: float) -> float:
    """The factor on the learning rate of 0-based `step`, under a schedule of NAMES."""
    if name == "cosine":
        return cosine(step, steps, warmup)
    assert name == "trapezoid", name
    return trapezoid(step, steps, warmup, decay)


def cosine(step: int, steps: int, warmup: float) -> float:
    """Pre-training's: linear to 1 over the first `warmup` of the steps, then cosine.

    The step after the last one would be 0.
    """
    rise = warmup * steps
    if step + 1 < rise:
        return (step + 1) / rise
    # The first step at 1 is the top of the cosine.
    top = max(0.0, math.ceil(rise) - 1)
    return 0.5 * (1 + math.cos(math.pi * (step - top) / (steps - top)))


def trapezoid(step: int, steps: int, warmup: float, decay: float) -> float:
    """Rise, stay, fall: the factor on the learning rate of 0-based `step`.

    Linear to 1 over the first `warmup` of the steps, linear to 0 over the last
    `decay`. A run can be lengthened on resume until it starts to fall.
    """
    rise = (step + 1) / max(1.0, warmup * steps)
    fall = (steps - step) / max(1.0, decay * steps)
    return min(1.0, rise, fall)
