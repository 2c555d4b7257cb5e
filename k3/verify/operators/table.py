"""Every operator by its name."""

import difflib

from k3.errors import RequestError
from k3.verify.operators import channel, kda, mla, mx, sample, vision
from k3.verify.operators.operator import Operator

OPERATORS: dict[str, Operator] = {
    op.name: op
    for module in (kda, mla, channel, mx, vision, sample)
    for op in module.OPERATORS
}


def find(name: str) -> Operator:
    """The operator of a name. Raises: RequestError, with the nearest names."""
    if name not in OPERATORS:
        near = difflib.get_close_matches(name, OPERATORS, n=2) or OPERATORS
        raise RequestError(
            f"an operator is one that k3 vectors list names: got {name!r}; "
            f"did you mean {' or '.join(near)}?"
        )
    return OPERATORS[name]
