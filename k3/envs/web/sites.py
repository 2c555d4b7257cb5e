"""The kinds of sites: a counter with a limit, a converter, a list with a filter."""

import random

from k3.data.tasks import words
from k3.envs.web.scene import Scene, Seen, Step
from k3.envs.web.site import Look, Site, page


def counter(rng: random.Random) -> Site:
    """Two buttons that change a number, never past a limit, and one that resets it."""
    look, title = Look.drawn(rng), words.word(rng).capitalize()
    start, step = rng.randint(2, 60), rng.randint(2, 9)
    most = start + step * rng.randint(3, 5) - rng.randint(0, step - 1)
    more, less = f"Add {step}", f"Take {step}"
    main = (
        f'<div role="status">{start}</div><button id="more">{more}</button>'
        f'<button id="less">{less}</button><button id="reset">Reset</button>'
    )

    def after(ups: int, downs: int, reset: bool = False) -> Scene:
        steps, value = [Step("click", "button", more)] * ups, start + step * ups
        if reset:
            steps, value = [*steps, Step("click", "button", "Reset")], start
        value = max(min(value, most) - step * downs, 0)
        steps += [Step("click", "button", less)] * downs
        return Scene(tuple(steps), (_status(str(value)),))

    return Site(
        name="counter",
        spec=(
            f"A page titled {title}: rows of a status (role status) that says {start}, "
            f"and buttons {more}, {less} and Reset. The first adds {step} to the "
            f"number, but never past {most}: then it is {most}. The second takes "
            f"{step} off, but never below 0: then it is 0. Reset makes it {start}. "
            f"{look.text}"
        ),
        files=page(title, look.css, main, _counting(start, step, most)),
        structure=(
            _title(title),
            _status(str(start)),
            *map(_button, (more, less, "Reset")),
        ),
        scenes=(
            after(rng.randint(1, 2), 0),
            after(7, rng.randint(1, 2)),
            after(rng.randint(1, 2), 1, reset=True),
        ),
    )


def converter(rng: random.Random) -> Site:
    """A box for a number, and what it is in another unit."""
    look, title = Look.drawn(rng), words.word(rng).capitalize()
    one, other = (f"{word}s" for word in _different(rng, 2))
    factor, extra = rng.randint(3, 19), rng.randint(5, 90)
    main = (
        f'<input aria-label="{one}" value=""><button id="go">Convert</button>'
        '<div role="status">nothing yet</div>'
    )
    script = _converting(factor, extra, other)

    def after(text: str, said: str) -> Scene:
        steps = (Step("fill", "textbox", one, text), Step("click", "button", "Convert"))
        return Scene(steps, (_status(said),))

    def right(number: int) -> Scene:
        return after(str(number), f"{number * factor + extra} {other}")

    return Site(
        name="converter",
        spec=(
            f"A page titled {title}: rows of a text box whose label for assistive "
            f"technology is {one}, a button Convert, and a status (role status) that "
            f"says: nothing yet. Convert reads a whole number of {one} and says the "
            f"number times {factor} plus {extra}, a space and {other}; for anything "
            f"else: not a whole number. {look.text}"
        ),
        files=page(title, look.css, main, script),
        structure=(
            _title(title),
            Seen("textbox", one, painted=False),
            _button("Convert"),
            _status("nothing yet"),
        ),
        scenes=(
            right(rng.randint(2, 999)),
            right(-rng.randint(2, 999)),
            after(f"{words.word(rng)} {rng.randint(2, 9)}", "not a whole number"),
        ),
    )


def tasks(rng: random.Random) -> Site:
    """A list that grows, whose buttons take things off it."""
    look, title = Look.drawn(rng), words.word(rng).capitalize()
    label, first, *things = _different(rng, 5)
    add = f"Add to {words.word(rng)}"
    main = (
        f'<input aria-label="{label}"><button id="add">{add}</button>'
        f'<div role="status">1 in all</div><ul><li>{first}</li></ul>'
    )

    def put(thing: str) -> tuple[Step, ...]:
        return Step("fill", "textbox", label, thing), Step("click", "button", add)

    def left(*names: str) -> tuple[Seen, ...]:
        listed = " ".join(names)
        return (
            _status(f"{len(names)} in all"),
            Seen("list", text=listed),
            Seen("listitem", count=len(names)),
        )

    both = put(things[0]) + put(things[1])
    gone = Step("click", "text", things[0])
    return Site(
        name="tasks",
        spec=_listed(title, label, add, first) + look.text,
        files=page(title, look.css + LIST, main, LISTING),
        structure=(
            _title(title),
            Seen("textbox", label, painted=False),
            _button(add),
            *left(first),
        ),
        scenes=(
            Scene(both, left(first, things[0], things[1])),
            Scene((*both, gone), left(first, things[1])),
            Scene(put("  ") + put(things[2]), left(first, things[2])),
        ),
    )


def _counting(start: int, step: int, most: int) -> str:
    return f"""\
let now = {start};
const show = n => document.querySelector("[role=status]").textContent = now = n;
more.onclick = () => show(Math.min(now + {step}, {most}));
less.onclick = () => show(Math.max(now - {step}, 0));
reset.onclick = () => show({start});"""


def _converting(factor: int, extra: int, other: str) -> str:
    return f"""\
const box = document.querySelector("input"), out = document.querySelector("div");
const whole = /^-?\\d+$/;
go.onclick = () => out.textContent = whole.test(box.value.trim())
  ? Number(box.value) * {factor} + {extra} + " {other}" : "not a whole number";"""


LISTING = """\
const box = document.querySelector("input"), list = document.querySelector("ul");
const count = () => document.querySelector("[role=status]").textContent =
  list.children.length + " in all";
const drop = item => item.onclick = () => { item.remove(); count(); };
drop(list.children[0]);
add.onclick = () => {
  if (!box.value.trim()) return;
  const item = document.createElement("li");
  item.textContent = box.value.trim();
  drop(item); list.append(item); box.value = ""; count();
};"""
LIST = """\
ul { list-style: none; margin: 0; padding: 0; }
li { line-height: 24px; }
"""
SITES = (counter, converter, tasks)


def _listed(title: str, label: str, add: str, first: str) -> str:
    return (
        f"A page titled {title}: rows of a text box whose label for assistive "
        f"technology is {label}, a button {add}, a status (role status) that says how "
        f"many things there are, as in: 1 in all; and a list (ul) with {first} in it. "
        "The button puts what is in the box at the end of the list and empties the "
        "box; blanks alone put nothing. A click on a thing takes it off. The list has "
        "no margins, bullets or padding, its rows are 24px high. "
    )


def _different(rng: random.Random, count: int) -> list[str]:
    """So many made-up words, no two the same."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[words.word(rng)] = None
    return list(found)


def _title(name: str) -> Seen:
    return Seen("heading", name, name)


def _status(text: str) -> Seen:
    return Seen("status", text=text)


def _button(name: str) -> Seen:
    return Seen("button", name)
