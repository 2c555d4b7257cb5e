"""A table of numbers and a formula behind it: found by fitting, not by heart."""

import random

from k3.envs.autonomous.assignment import DIAGNOSE, PROGRAM, Assignment, Case

LARGEST, ROWS, CASES = 20, 12, 8

DIAGNOSIS = f"""\
import subprocess, sys
rows = [line.split(",") for line in open("open.csv").read().splitlines()[1:]]
given = "".join(f"{{a}} {{b}}\\n" for a, b, _ in rows)
ran = subprocess.run(
    [sys.executable, "{PROGRAM}"], input=given, capture_output=True, text=True
)
said = ran.stdout.split()
right = sum(s == y for s, (_, _, y) in zip(said, rows))
print(f"{{right}} of {{len(rows)}} open rows right", ran.stderr[-300:])
"""

SOLUTION = """\
import sys
from fractions import Fraction

def solve(rows):
    for i in range(4):
        at = next((r for r in range(i, len(rows)) if rows[r][i]), None)
        if at is None:
            return None
        rows[i], rows[at] = rows[at], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for r in range(len(rows)):
            if r != i:
                rows[r] = [v - rows[r][i] * w for v, w in zip(rows[r], rows[i])]
    return None if any(row[4] for row in rows[4:]) else [row[4] for row in rows[:4]]

lines = open("open.csv").read().splitlines()[1:]
table = [tuple(map(int, line.split(","))) for line in lines]
for t in range(20):
    found = solve([[Fraction(v) for v in (a, b, 1, a > t, y)] for a, b, y in table])
    if found:
        break
for line in sys.stdin:
    a, b = map(int, line.split())
    print(found[0] * a + found[1] * b + found[2] + found[3] * (a > t))
"""


def draw(rng: random.Random) -> Assignment:
    """A formula, its open table, and hidden rows that the table lacks."""
    p, q, r, s = (rng.choice((-1, 1)) * rng.randint(2, 40) for _ in range(4))
    limit = rng.randint(5, LARGEST - 5)

    def value(a: int, b: int) -> int:
        return p * a + q * b + r + (s if a > limit else 0)

    table = [(a, rng.randint(0, 999)) for a in range(LARGEST + 1) for _ in range(2)]
    rng.shuffle(table)
    lines = [f"{a},{b},{value(a, b)}" for a, b in table]

    def case() -> Case:
        rows = [(rng.randint(0, LARGEST), rng.randint(1000, 9999)) for _ in range(ROWS)]
        right = [str(value(a, b)) for a, b in rows]
        given = "".join(f"{a} {b}\n" for a, b in rows)
        return Case(given, lambda said: said.split() == right)

    return Assignment(
        name="formula",
        words=(
            f"open.csv has columns a, b and y. y is a whole-number combination of a, b "
            f"and 1, and a whole number more where a is above some limit. Write "
            f"{PROGRAM}: it reads lines of a and b, and prints y for each, also for "
            f"rows that are not in the table: a is 0 to {LARGEST}, b is 0 to 9999."
        ),
        files={"open.csv": "\n".join(["a,b,y", *lines, ""]), DIAGNOSE: DIAGNOSIS},
        hidden=tuple(case() for _ in range(CASES)),
        solution=SOLUTION,
    )
