"""Programs to write: steps in words and in Python, composed, with inputs to try."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Step = tuple[str, str]
"""What to do in words, and a Python expression that does it to `x`; both with {k}."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """Programs over one kind of input: its words, its steps, an example of it."""

    words: str
    steps: tuple[Step, ...]
    example: Callable[[random.Random], Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """What to write: the steps in words, and as expressions in Python."""

    family: Family
    words: tuple[str, ...]
    code: tuple[str, ...]

    def output(self, given: Any) -> Any:
        """What it makes of an input."""
        for expression in self.code:
            given = eval(expression, {"x": given})
        return given

    @property
    def source(self) -> str:
        """The program: JSON on standard input, JSON on standard output."""
        lines = [f"x = {expression}" for expression in self.code]
        return "\n".join(
            [
                "import json",
                "x = json.loads(input())",
                *lines,
                "print(json.dumps(x))",
                "",
            ]
        )


def draw(rng: random.Random, kind: str, steps: int) -> Program:
    """So many different steps of a family, in any order, with numbers drawn."""
    family = FAMILIES[kind]
    chosen = [
        (words, code, {"k": rng.randint(2, 5), "m": rng.randint(7, 19)})
        for words, code in rng.sample(family.steps, steps)
    ]
    return Program(
        family=family,
        words=tuple(words.format(**given) for words, _, given in chosen),
        code=tuple(_filled(code, given) for _, code, given in chosen),
    )


def _filled(code: str, given: dict[str, int]) -> str:
    """An expression with its numbers; braces of Python stay."""
    for name, value in given.items():
        code = code.replace("{" + name + "}", str(value))
    return code


def _numbers(rng: random.Random) -> list[int]:
    return [rng.randint(-60, 60) for _ in range(rng.randint(0, 12))]


def _letters(rng: random.Random) -> str:
    words = [
        "".join(rng.choice("aabeeilnorstuu") for _ in range(rng.randint(1, 7)))
        for _ in range(rng.randint(0, 7))
    ]
    return " ".join(words)


def _sales(rng: random.Random) -> list[list[Any]]:
    names = ["ada", "bo", "cy", "dee", "eli"]
    return [[rng.choice(names), rng.randint(1, 90)] for _ in range(rng.randint(0, 12))]


FAMILIES: dict[str, Family] = {
    "numbers": Family(
        words="a list of whole numbers",
        example=_numbers,
        steps=(
            ("drop the numbers that {k} divides", "[a for a in x if a % {k}]"),
            (
                "replace each number by its square modulo {m}",
                "[a * a % {m} for a in x]",
            ),
            (
                "add to each number the one before it; the first stays as it is",
                "x[:1] + [a + b for a, b in zip(x, x[1:])]",
            ),
            (
                "replace each number by the largest up to there, itself included",
                "[max(x[: i + 1]) for i in range(len(x))]",
            ),
            (
                "sort by the last decimal digit of the size of the number; of equal "
                "ones the earlier stays before",
                "sorted(x, key=lambda a: abs(a) % 10)",
            ),
            ("turn the order round", "x[::-1]"),
            ("keep only the first of equal numbers", "list(dict.fromkeys(x))"),
            (
                "multiply each number by its place, counted from 1",
                "[i * a for i, a in enumerate(x, 1)]",
            ),
            (
                "move the first {k} numbers to the end, or all if there are fewer",
                "x[{k}:] + x[:{k}]",
            ),
            ("add {m} to every negative number", "[a + {m} * (a < 0) for a in x]"),
        ),
    ),
    "letters": Family(
        words="a text of lower-case words with one blank between",
        example=_letters,
        steps=(
            ("spell each word backwards", "' '.join(w[::-1] for w in x.split())"),
            (
                "replace each vowel by the next of a, e, i, o, u, and u by a",
                "x.translate(str.maketrans('aeiou', 'eioua'))",
            ),
            (
                "sort the words by length; of equal ones the earlier stays before",
                "' '.join(sorted(x.split(), key=len))",
            ),
            (
                "drop the words of fewer than {k} letters",
                "' '.join(w for w in x.split() if len(w) >= {k})",
            ),
            (
                "cut each word before its first letter that occurs again in it; drop "
                "what is cut to nothing",
                "' '.join(filter(None, (next((w[:i] for i, c in enumerate(w) "
                "if w.count(c) > 1), w) for w in x.split())))",
            ),
            (
                "write every third word twice, with a blank between",
                "' '.join(w if i % 3 else w + ' ' + w "
                "for i, w in enumerate(x.split(), 1))",
            ),
            (
                "put behind each word its number of letters",
                "' '.join(w + str(len(w)) for w in x.split())",
            ),
            ("turn the order of the words round", "' '.join(x.split()[::-1])"),
            (
                "keep only the first of equal words",
                "' '.join(dict.fromkeys(x.split()))",
            ),
        ),
    ),
    "sales": Family(
        words="a list of pairs of a name and a whole number",
        example=_sales,
        steps=(
            (
                "add up the numbers of each name, names in the order of their first "
                "pair",
                "[[n, sum(b for a, b in x if a == n)] "
                "for n in dict.fromkeys(a for a, _ in x)]",
            ),
            (
                "drop the pairs whose number is below {m}",
                "[p for p in x if p[1] >= {m}]",
            ),
            (
                "sort by number, the largest first; equal ones by name",
                "sorted(x, key=lambda p: (-p[1], p[0]))",
            ),
            ("keep the first {k} pairs", "x[:{k}]"),
            (
                "of each name keep the pair with its largest number, the first of "
                "these",
                "[p for i, p in enumerate(x) if p[1] == max(b for a, b in x "
                "if a == p[0]) and p not in x[:i]]",
            ),
            (
                "subtract from each number that of the pair before; the first stays",
                "x[:1] + [[b[0], b[1] - a[1]] for a, b in zip(x, x[1:])]",
            ),
            ("turn the order round", "x[::-1]"),
            (
                "replace each number by its remainder modulo {m}",
                "[[a, b % {m}] for a, b in x]",
            ),
        ),
    ),
}
