"""Which projects' signatures are known, and for which operators."""

from collections.abc import Callable
from typing import Any

from k3.errors import RequestError
from k3.verify.adapters import fla, transformers

SIGNATURES = {"fla": fla.OPERATORS, "transformers": transformers.OPERATORS}


def adapted(
    function: Callable[..., Any], operator: str, signature: str
) -> Callable[..., Any]:
    """A function of another project's signature as one of ours; "k3" is ours.

    Raises: RequestError for a signature or an operator that nobody wrote down.
    """
    if signature == "k3":
        return function
    if signature not in SIGNATURES:
        raise RequestError(
            f"--as must be one of k3, {', '.join(SIGNATURES)}: got {signature!r}; "
            "choose one"
        )
    known = SIGNATURES[signature]
    if operator not in known:
        raise RequestError(
            f"the signatures of {signature} cover {', '.join(known)}: got {operator}; "
            "wrap the function in one of ours, as docs/verify.md shows"
        )
    return known[operator](function)
