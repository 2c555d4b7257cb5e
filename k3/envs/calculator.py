"""Two-digit addition through a calculator: the numbers are copied, never added."""

from k3.data.tasks import tools
from k3.data.tasks.lot import Lot, Split
from k3.envs.question import Arguments, Question

DOMAIN = "calculator"
LARGEST = 10**12
WORDINGS = (
    "What is {a} + {b}?",
    "Compute {a} + {b}.",
    "{a} + {b} = ?",
    "What is {a} plus {b}?",
    "Compute {a} plus {b}.",
)


def make(split: Split, index: int) -> Question:
    """The question of this index of a split."""
    return draw(Lot.of(DOMAIN, split, index))


def draw(lot: Lot) -> Question:
    """A pair of two-digit numbers that belongs to the lot's split, in some wording."""
    while True:
        a, b = lot.rng.randint(10, 99), lot.rng.randint(10, 99)
        if lot.keeps(f"addition:{a}+{b}"):
            break
    return Question(
        text=lot.rng.choice(WORDINGS).format(a=a, b=b),
        tool=tools.CALCULATOR,
        needed={"a": a, "op": "+", "b": b},
        run=compute,
    )


def compute(arguments: Arguments) -> str:
    """The result of a op b. Raises: ValueError for what the tool does not take."""
    if set(arguments) != {"a", "op", "b"}:
        raise ValueError("calculator takes a, op and b")
    a, op, b = arguments["a"], arguments["op"], arguments["b"]
    if not all(type(x) in (int, float) and abs(x) <= LARGEST for x in (a, b)):
        raise ValueError("a and b are numbers")
    if not isinstance(op, str) or op not in tools.OPERATIONS:
        raise ValueError(f"op is one of {', '.join(tools.OPERATIONS)}")
    return str({"+": a + b, "-": a - b, "*": a * b}[op])
