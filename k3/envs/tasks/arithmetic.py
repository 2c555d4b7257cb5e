"""Whole numbers through a calculator: an expression, and its exact value."""

import ast
import operator
from collections.abc import Callable

from k3.data.tasks.lot import Lot, Split
from k3.envs.harness.task import Ability, Content, Steps, text
from k3.envs.tasks.exact import Exact

DOMAIN = "arithmetic"
MOST_CHARS = 500
MOST_DIGITS = 200
DEEPEST = 4
_OPERATIONS: dict[type, tuple[str, Callable[[int, int], int]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
}


def make(split: Split, index: int) -> Exact:
    """An expression of one to four operations that belongs to the split."""
    lot = Lot.of(DOMAIN, split, index)
    while True:
        asked = _expression(lot, 1 + index % DEEPEST)
        right = str(value(asked))
        # A value of one digit would be guessed too often.
        if len(right) > 2 and lot.keeps(f"{DOMAIN}:{asked}"):
            break
    goal = (
        f"What is {asked}? Here // is division rounded down and % is its remainder, "
        "never negative for a positive divisor. Answer with the whole number alone."
    )

    def script() -> Steps:
        return text((yield "compute", {"expression": asked}))

    return Exact(
        goal=goal,
        abilities={"compute": COMPUTE},
        accepts=lambda answer: answer == right,
        script=script,
    )


def compute(expression: str) -> Content:
    """The value of an expression, or a sentence that says why there is none."""
    try:
        found = value(expression)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError) as e:
        return f"Error: {e}; write whole numbers with + - * // % and brackets."
    return str(found)


COMPUTE = Ability(
    words="Compute with whole numbers: + - * // % and brackets.",
    properties={"expression": {"type": "string"}},
    act=compute,
)


def value(expression: str) -> int:
    """The value of an expression of whole numbers.

    Raises: ValueError, SyntaxError or ArithmeticError.
    """
    if len(expression) > MOST_CHARS:
        raise ValueError(f"an expression has at most {MOST_CHARS} characters")
    return _value(ast.parse(expression.strip(), mode="eval").body)


def _value(node: ast.AST) -> int:
    match node:
        case ast.Constant(value=int() as number) if type(number) is int:
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            found = _OPERATIONS[type(op)][1](_value(left), _value(right))
            if abs(found) >= 10**MOST_DIGITS:
                raise ValueError(f"a value has at most {MOST_DIGITS} digits")
            return found
    raise ValueError("this is no expression of whole numbers")


def _expression(lot: Lot, operations: int) -> str:
    """Operations over numbers of two to six digits, bracketed; divisors are numbers."""
    rng = lot.rng
    if operations == 0:
        return str(rng.randint(10, 10 ** rng.randint(2, 6)))
    sign = rng.choice(["+", "-", "*", "*", "//", "%"])
    left = rng.randrange(operations)
    right = operations - 1 - left
    if sign in ("//", "%"):
        left, right = operations - 1, 0
    return f"({_expression(lot, left)} {sign} {_expression(lot, right)})"
