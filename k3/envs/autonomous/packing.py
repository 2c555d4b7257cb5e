"""Things into as few boxes as a good rule needs: open examples, hidden ones alike."""

import json
import random

from k3.envs.autonomous.assignment import DIAGNOSE, PROGRAM, Assignment, Case

OPEN, CASES = 4, 8

DIAGNOSIS = f"""\
import json, subprocess, sys
for example in json.load(open("open.json")):
    size, things = example["size"], example["things"]
    ran = subprocess.run(
        [sys.executable, "{PROGRAM}"],
        input=json.dumps({{"size": size, "things": things}}),
        capture_output=True, text=True,
    )
    try:
        boxes = json.loads(ran.stdout)
        full = [0] * len(things)
        for thing, box in zip(things, boxes, strict=True):
            full[box] += thing
        fits = max(full) <= size
        used = sum(map(bool, full))
        print(f"{{used}} boxes, {{example['boxes']}} wanted, fits: {{fits}}")
    except Exception as error:
        print("no boxes:", repr(error), ran.stderr[-300:])
"""

SOLUTION = """\
import json, sys
given = json.load(sys.stdin)
size, things = given["size"], given["things"]
left, boxes = [], [0] * len(things)
for i in sorted(range(len(things)), key=lambda i: -things[i]):
    box = next((b for b, room in enumerate(left) if room >= things[i]), len(left))
    if box == len(left):
        left.append(size)
    left[box] -= things[i]
    boxes[i] = box
print(json.dumps(boxes))
"""


def draw(rng: random.Random) -> Assignment:
    """A size of boxes, and lists of things to put into them."""
    size = rng.randint(80, 200)

    def things() -> list[int]:
        return [rng.randint(size // 10, size // 2) for _ in range(rng.randint(30, 60))]

    def case(given: list[int]) -> Case:
        text = json.dumps({"size": size, "things": given})
        return Case(text, lambda said: packed(said, size, given))

    shown = [things() for _ in range(OPEN)]
    examples = [{"size": size, "things": t, "boxes": wanted(size, t)} for t in shown]
    return Assignment(
        name="packing",
        words=(
            f"Write {PROGRAM}: it reads JSON with size and things, and prints a JSON "
            "list with the number of a box for each thing, counted from 0, such that "
            "the things of a box are together at most size. There may be no more boxes "
            "than putting things by falling size into the first box with room needs; "
            "open.json has examples with that number."
        ),
        files={"open.json": json.dumps(examples), DIAGNOSE: DIAGNOSIS},
        hidden=tuple(case(things()) for _ in range(CASES)),
        solution=SOLUTION,
    )


def wanted(size: int, things: list[int]) -> int:
    """Boxes that first fit by falling size needs."""
    left: list[int] = []
    for thing in sorted(things, reverse=True):
        for box, room in enumerate(left):
            if room >= thing:
                left[box] -= thing
                break
        else:
            left.append(size - thing)
    return len(left)


def packed(said: str, size: int, things: list[int]) -> bool:
    """Whether a printed list puts every thing into few enough boxes."""
    try:
        boxes = json.loads(said)
    except (ValueError, RecursionError):
        return False
    if not isinstance(boxes, list) or len(boxes) != len(things):
        return False
    if any(type(box) is not int or not 0 <= box < len(things) for box in boxes):
        return False
    full = [0] * len(things)
    for thing, box in zip(things, boxes, strict=True):
        full[box] += thing
    return max(full) <= size and sum(map(bool, full)) <= wanted(size, things)
