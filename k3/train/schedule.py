"""Learning rate over the steps of a run."""


def trapezoid(step: int, steps: int, warmup: float, decay: float) -> float:
    """Rise, stay, fall: the factor on the learning rate of 0-based `step`.

    Linear to 1 over the first `warmup` of the steps, linear to 0 over the last
    `decay`. A run can be lengthened on resume until it starts to fall.
    """
    rise = (step + 1) / max(1.0, warmup * steps)
    fall = (steps - step) / max(1.0, decay * steps)
    return min(1.0, rise, fall)
