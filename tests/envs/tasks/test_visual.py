"""A picture is cropped, zoomed, measured; what comes back is a picture and no more."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from k3.data.tasks import lot
from k3.envs import harness
from k3.envs.environment import play
from k3.envs.harness import PRESETS, Harnessed
from k3.envs.tasks import scenes, visual


def decoded(part):
    stored = part["image_url"]["url"].removeprefix("data:image/png;base64,")
    return Image.open(io.BytesIO(base64.b64decode(stored)))


def played_by(task, steps, name="assistant"):
    played = Harnessed(task, harness.preset(name))
    return play(played, harness.agent(played, steps))


@pytest.mark.parametrize("index", range(len(PRESETS)))
def test_the_perfect_agent_is_right_under_every_preset(boxes, index):
    task = visual.make(lot.SPLITS[index % 2], index, boxes)
    assert played_by(task, task.solve(), PRESETS[index]) == 1.0


@pytest.fixture
def task(boxes):
    made = visual.make("train", 3, boxes)
    yield made
    made.close()


def test_what_is_shown_comes_back(task):
    code = "import pixels; p = pixels.load(); p.crop(5, 6, 20, 10).zoom(2).show()"
    words, picture = task.abilities["python"].act(code=f"{code}; print(p.width)")
    assert words["text"] == "240"
    whole = np.array(decoded(task.goal[1]))
    cut = whole[6:16, 5:25].repeat(2, 0).repeat(2, 1)
    assert np.array_equal(np.array(decoded(picture)), cut)
    assert task.abilities["run"].act(command="echo no picture") == "no picture"


def test_what_is_no_picture_is_a_sentence_and_names_are_plain(task):
    code = "mkdir -p show; echo x > show/a.png; ln -s /dev/zero show/b.png; "
    code += "touch 'show/a b.png' show/c.txt; exit 2"
    found = task.abilities["run"].act(command=code)
    assert found[0]["text"] == "[exit code 2]"
    assert [part["type"] for part in found] == ["text"] * 3
    assert "[a.png is not shown: an image" in found[1]["text"]
    assert "[b.png is not shown: a sandbox could not read" in found[2]["text"]


def test_too_large_and_too_many_are_not_shown(task):
    code = "import pixels\nfor i in range(5): pixels.load().show(f'v{i}')\n"
    code += "pixels.load().zoom(6).show('a')"
    found = task.abilities["python"].act(code=code)
    assert [part["type"] for part in found] == [
        "text",
        "text",
        "image_url",
        "image_url",
    ]
    assert "a.png is not shown" in found[1]["text"]


def only(answer):
    yield from ()
    return answer


def changes_the_picture(task):
    yield "run", {"command": "head -c 200000 /dev/zero > picture.ppm; rm pixels.py"}
    return (yield "run", {"command": "cat answer* right* 2>/dev/null; env"})


@pytest.mark.parametrize("index", range(4))
def test_cheaters_and_the_empty_get_nothing(boxes, index):
    right = solved(visual.make("train", index, boxes))
    assert visual.make("train", index, boxes).accepts(right)
    for answer in (
        "",
        f"{right} or 5",
        f"about {right}",
        "red, green, blue, yellow",
        ", ".join(map(str, range(300))),
        f"{right}.0",
        "-" + right,
        "٣" * 2,
    ):
        task = visual.make("train", index, boxes)
        assert played_by(task, only(answer)) == 0.0
    task = visual.make("train", index, boxes)
    if index == 3:
        assert played_by(task, changes_the_picture(task)) == 0.0
    task.close()


def solved(task):
    """The perfect agent's answer, by the module in this process."""
    painted = decoded(task.goal[1])
    picture = visual_lines(painted)
    steps = task.solve()
    next(steps)
    try:
        steps.send(picture)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("one step is enough")


def visual_lines(painted):
    """What MEASURE prints, without a sandbox."""
    from k3.envs.tasks import pixels

    picture = pixels.Picture(*painted.size, painted.tobytes())
    lines = []
    for colour in pixels.COLOURS:
        for box in picture.parts(colour):
            square = picture.is_(colour, box[0], box[1])
            kind = "square" if square else "circle"
            lines.append(" ".join(map(str, (colour, kind, *box))))
    frame = picture.box("white")
    if frame:
        y = (frame[1] + frame[3]) // 2
        for x in range(frame[0] + 2, frame[2], 3):
            own = [c for c in pixels.COLOURS if picture.is_(c, x, y)]
            lines.append(" ".join(["cell", *own]))
    return "\n".join(lines)


def test_a_distance_may_be_off_by_one_and_a_count_may_not():
    scene = scenes.Scene(shapes=(), question="?", right="40", off=1)
    assert [a for a in range(37, 44) if visual._is_right(str(a), scene)] == [39, 40, 41]
    exact = scenes.Scene(shapes=(), question="?", right="4")
    assert [a for a in range(9) if visual._is_right(str(a), exact)] == [4]
