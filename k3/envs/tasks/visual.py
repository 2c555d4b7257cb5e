"""A picture and a question; Python in a sandbox crops, zooms, measures and shows."""

import base64
import io
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

from k3.data import images
from k3.data.tasks.lot import Lot, Split
from k3.envs.harness.task import Ability, Content, Steps, text
from k3.envs.sandbox import Backend, Sandbox
from k3.envs.tasks import scenes
from k3.envs.tasks.exact import Exact
from k3.envs.tasks.scenes import Scene
from k3.envs.workshop import Workshop, said
from k3.errors import RequestError

if TYPE_CHECKING:
    from PIL.Image import Image

DOMAIN = "visual"
MOST_SHOWN = 3
MOST_PIXELS = 1_000_000
_NAME = re.compile(r"[\w-]{1,60}\.png")
_CLEAN = "rm -rf show; mkdir show; "
GOAL = """\
{question}
The picture has {width} x {height} pixels and lies in picture.ppm. pixels.py beside it \
is a module with load, crop, zoom, at, parts, box and show; its docstring says how it \
is used. Colours are red, green, blue, yellow and white. Answer with the number or the \
words alone."""
MEASURE = """\
python3 - <<'END'
import pixels
p = pixels.load()
for colour in pixels.COLOURS:
    for box in p.parts(colour):
        kind = "square" if p.is_(colour, box[0], box[1]) else "circle"
        print(colour, kind, *box)
frame = p.box("white")
if frame:
    p.crop(frame[0], frame[1], frame[2] - frame[0] + 1, 5).zoom(8).show("strip")
    y = (frame[1] + frame[3]) // 2
    for x in range(frame[0] + 2, frame[2], 3):
        print("cell", *[c for c in pixels.COLOURS if p.is_(c, x, y)])
END"""


def make(split: Split, index: int, backend: Backend) -> Exact:
    """A scene of the split and a question about it: count, distance, size, colours."""
    lot = Lot.of(DOMAIN, split, index)
    while True:
        scene = scenes.draw(lot.rng, index)
        if lot.keeps(f"{DOMAIN}:{scene.question}:{scene.shapes}:{scene.strip}"):
            break
    picture = scenes.paint(scene, lot.rng)
    size = {"width": scenes.WIDTH, "height": scenes.HEIGHT}
    head = b"P6 %d %d 255\n" % picture.size
    module = resources.files("k3.envs.tasks").joinpath("pixels.py").read_bytes()
    files = {"picture.ppm": head + picture.tobytes(), "pixels.py": module}
    shop = Workshop(backend, files)
    return Exact(
        goal=[part(GOAL.format(question=scene.question, **size)), shown(picture)],
        abilities=_abilities(shop),
        accepts=lambda answer: _is_right(answer, scene),
        script=lambda: _measure(scene.question),
        free=shop.close,
    )


def part(words: str) -> dict[str, Any]:
    """A part of a content that is text."""
    return {"type": "text", "text": words}


def shown(picture: "Image") -> dict[str, Any]:
    """A part of a content that is a picture, as the OpenAI API has it."""
    stored = io.BytesIO()
    picture.save(stored, "PNG")
    url = "data:image/png;base64," + base64.b64encode(stored.getvalue()).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def _abilities(shop: Workshop) -> dict[str, Ability]:
    def run(command: str) -> Content:
        return shop.use(lambda box: _looked(box, ["bash", "-c", _CLEAN + command]))

    def python(code: str) -> Content:
        line = [*("bash", "-c", _CLEAN + 'exec python3 -c "$1"', "-"), code]
        return shop.use(lambda box: _looked(box, line))

    own = shop.abilities
    shows = "What pixels.show makes comes back as a picture."
    return {
        **own,
        "run": Ability(
            words=f"{own['run'].words} {shows}",
            properties=own["run"].properties,
            act=run,
        ),
        "python": Ability(
            words=f"Run code of Python in the folder of the work. {shows}",
            properties={"code": {"type": "string"}},
            act=python,
        ),
    }


def _looked(box: Sandbox, argv: list[str]) -> Content:
    """What a command printed, and the pictures that it left in the folder show."""
    printed = said(box.run(argv))
    names = [n for n in box.run(["ls", "show"]).text.splitlines() if _NAME.fullmatch(n)]
    if not names:
        return printed
    found = [part(printed or "Pictures:")]
    for name in names[:MOST_SHOWN]:
        try:
            # Decoded and written anew here: what is shown is a picture and no more.
            made = images.read(box.read(f"show/{name}"), MOST_PIXELS).convert("RGB")
            found.append(shown(made))
        except RequestError as error:
            if not box.alive:
                raise
            found.append(part(f"[{name} is not shown: {error}]"))
    return found


def _is_right(answer: str, scene: Scene) -> bool:
    if not scene.off:
        return answer == scene.right
    number = re.fullmatch(r"[0-9]{1,6}", answer)
    return number is not None and abs(int(answer) - int(scene.right)) <= scene.off


def _measure(question: str) -> Steps:
    """Measure all shapes, and compute the answer from the boxes."""
    lines = text((yield "run", {"command": MEASURE})).splitlines()
    rows = [line.split() for line in lines]
    boxes = [
        (row[0], row[1], [int(side) for side in row[2:]])
        for row in rows
        if len(row) == 6
    ]
    words = re.findall(r"(\w+) (square|circle)", question)
    if "strip" in question:
        return ", ".join(row[1] for row in rows if row[:1] == ["cell"])
    own = [[b for c, k, b in boxes if (c, k) == pair] for pair in words]
    if question.startswith("How many pixels wide"):
        return str(max(right - left + 1 for left, _, right, _ in own[0]))
    if "from that of" not in question:
        return str(len(own[0]))
    (one,), (other,) = own
    across, down = ((one[a] + one[a + 2] - other[a] - other[a + 2]) / 2 for a in (0, 1))
    return str(round((across**2 + down**2) ** 0.5))
