"""A function that somebody wrote against an operator: errors, verdict, diagnosis."""

import importlib
import sys
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import torch

from k3.errors import RequestError
from k3.verify.exact.equal import equal
from k3.verify.exact.tensor import Unsupported
from k3.verify.operators.operator import Operator, Reading, Values, rounded
from k3.verify.operators.verdict import SHOWN, Errors, Verdict, measure

Function = Callable[..., Any]
# A diagnosis is made in float64; a function may still compute in fp32 inside.
DIAGNOSED = 1e-5


def check(
    function: Function,
    operator: Operator,
    *,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
    exact: bool = False,
    tolerance: float | None = None,
) -> Verdict:
    """Call the function with the operator's inputs by name, and judge what it returns.

    The truth is the equation in float64 on the inputs as they are after rounding to
    `dtype`. `exact` decides equality without a tolerance as well. Where the function
    differs, the known misreadings are tried, alone and up to three together.
    """
    bound = operator.bound(dtype) if tolerance is None else tolerance
    given = rounded(operator.inputs(seed), dtype)
    verdict = Verdict(operator=operator.name, dtype=SHOWN[dtype], seed=seed)
    expected = operator.expected(given)
    try:
        found = operator.named(_call(function, given))
    except (Exception, SystemExit) as error:
        verdict.problem = _said(error)
    else:
        pairs = [(n, x, expected[n]) for n, x in found.items()]
        verdict.outputs = [measure(n, x, y, dtype, bound) for n, x, y in pairs]
        verdict.passes = _passes(operator, verdict.outputs)
    if exact:
        _decide(verdict, function, operator, given)
    if not verdict.ok:
        verdict.diagnosis = diagnose(function, operator, seed)
    return verdict


def _call(function: Function, given: Values) -> Any:
    """Call with copies: a function that writes to its inputs harms nobody else."""
    copies = {
        n: x.clone() if isinstance(x, torch.Tensor) else x for n, x in given.items()
    }
    with torch.no_grad():
        return function(**copies)


def _passes(operator: Operator, outputs: list[Errors]) -> dict[str, bool]:
    """Whether all outputs lie within the tolerances of fp32 and of bf16."""
    return {
        SHOWN[dtype]: all(
            not e.note and e.relative <= operator.bound(dtype) for e in outputs
        )
        for dtype in (torch.float32, torch.bfloat16)
    }


def _decide(
    verdict: Verdict, function: Function, operator: Operator, given: Values
) -> None:
    """Exact equality over the reals, where the operator has a meaning there."""
    if not operator.exact:
        raise RequestError(
            f"{operator.name} works on bits or random numbers and has no exact meaning "
            "over the reals: got --exact; leave it out, the comparison is by value"
        )
    try:
        verdict.exact = equal(
            lambda **inputs: operator.named(function(**inputs)),
            lambda **inputs: operator.named(operator.reference(**inputs)),
            rounded(given, torch.float64),
            covering=False,
        )
    except Unsupported as error:
        verdict.problem = verdict.problem or str(error)
    except (Exception, SystemExit) as error:
        verdict.problem = verdict.problem or _said(error)


def _said(error: BaseException) -> str:
    """What the function raised, on one line."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def diagnose(function: Function, operator: Operator, seed: int = 0) -> str:
    """The misreadings, at most three, under which the function is right; or nothing."""
    given = rounded(operator.inputs(seed), torch.float64)
    expected = operator.expected(given)
    for readings in _hypotheses(operator.readings):
        try:
            inputs = dict(given)
            for reading in readings:
                inputs = reading.before(inputs)
            found = operator.named(_call(function, inputs))
            for reading in reversed(readings):
                found = reading.after(found)
        except (Exception, SystemExit):
            # A wrong layout fails in any way; another reading may fit.
            continue
        each = [
            measure(n, x, expected[n], torch.float64, DIAGNOSED)
            for n, x in found.items()
        ]
        if all(e.ok for e in each):
            return ", and ".join(reading.words for reading in readings)
    return ""


def _hypotheses(readings: tuple[Reading, ...]) -> Iterator[tuple[Reading, ...]]:
    for count in (1, 2, 3):
        yield from combinations(readings, count)


def load(name: str) -> Function:
    """The function of "module:function"; the working directory is searched first.

    Raises: RequestError where there is none.
    """
    module_name, _, path = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise RequestError(
            f"a function is given as module:function, from the working directory or "
            f"an installed package: got {name} ({error}); check both names"
        ) from error
    except (Exception, SystemExit) as error:
        raise RequestError(
            f"the module of a function must be importable: importing {module_name} "
            f"raised {_said(error)}; mend it, or name another"
        ) from error
    if isinstance(found, type) or not callable(found):
        raise RequestError(
            f"{name} must be a function: got {_kind(found)}; write a function of the "
            "operator's inputs that calls it"
        )
    function: Function = found
    return function


def _kind(found: Any) -> str:
    return "a class" if isinstance(found, type) else f"{type(found).__name__} {found!r}"
