"""The other tasks: their answers follow from what is shown."""

import re

import numpy as np
import pytest

from k3.data.tasks import copy, drawing, evidence, glyphs, needle, places, sums, svg
from k3.data.tasks.lot import Lot


def drawn(task, side="train", count=40):
    return [task.draw(Lot.of("x", side, index)) for index in range(count)]


def text_of(passage):
    return "".join(text for text, _ in passage.parts)


def test_copy_repeats_its_words():
    for passage in drawn(copy):
        told, again = text_of(passage).split("\nAgain:")
        assert told.removeprefix("Copy:") == again


def test_a_needle_lies_at_the_depth_of_its_index_and_is_asked_for():
    for index, passage in enumerate(drawn(needle)):
        text, question = text_of(passage).rsplit("\n", 1)
        lines = [f"{line}." for line in text.split(".") if line]
        at = next(i for i, line in enumerate(lines) if "The code of" in line)
        assert lines[at].strip() == f"{question}."
        assert at == round(needle.depth(index) * (len(lines) - 1))


def test_the_depths_are_from_top_to_end():
    assert [needle.depth(i) for i in range(6)] == [0, 0.25, 0.5, 0.75, 1, 0]


@pytest.mark.parametrize("side", ["train", "heldout"])
def test_a_modular_sum_is_right(side):
    for passage in drawn(sums, side):
        modulus, rest = re.fullmatch(r"Modulo (\d):(.*)", text_of(passage)).groups()
        found = re.findall(r" ([\d+]+) = (\d)", rest)
        assert len(found) == (1 if side == "heldout" else 12)
        for terms, remainder in found:
            assert sum(map(int, terms.split("+"))) % int(modulus) == int(remainder)


def test_evidence_follows_from_two_lines_of_different_documents_or_one():
    apart = 0
    for passage in drawn(evidence):
        text = text_of(passage)
        lives = dict(re.findall(r"(\w+) lives in (\w+)\.", text))
        lies = dict(re.findall(r"(\w+) is in (\w+)\.", text))
        who, land = re.search(r"The land of (\w+) is (\w+)$", text).groups()
        assert lies[lives[who]] == land
        documents = text.split("Document ")[1:]
        both = (f"{who} lives", f"{lives[who]} is in")
        places_ = [next(i for i, d in enumerate(documents) if b in d) for b in both]
        apart += places_[0] != places_[1]
    assert apart > 20


def test_svg_source_draws_its_picture():
    for item in drawn(svg):
        source = item.messages[1]["content"]
        shapes = []
        for element in re.findall(r"<(?:rect|circle) .*?/>", source):
            has = dict(re.findall(r'(\w+)="(\w+)"', element))
            if "r" in has:
                x, y, half = (int(has[key]) for key in ("cx", "cy", "r"))
                shape = ("circle", has["fill"], x - half, y - half, 2 * half)
            else:
                x, y, side = (int(has[key]) for key in ("x", "y", "width"))
                shape = ("square", has["fill"], x, y, side)
            shapes.append(shape)
        assert np.array_equal(drawing.paint(shapes), item.pictures[0])


def test_a_place_is_the_centre_of_the_ink():
    units = 0
    for item in drawn(places):
        numbers = re.findall(r"[\d.]+", item.messages[1]["content"])
        unit = "units" in item.messages[0]["content"][1]["text"]
        scale = drawing.SIDE if unit else 1
        down, right = np.nonzero(np.asarray(item.pictures[0]).max(2))
        centre = (
            (right.min() + right.max() + 1) / 2,
            (down.min() + down.max() + 1) / 2,
        )
        told = [float(number) * scale for number in numbers]
        assert told == pytest.approx(centre, abs=0.3)
        units += unit
    assert 5 < units < 35


def test_a_words_picture_shows_ink_and_differs_from_anothers():
    one, two = drawn(glyphs, count=2)
    pictures = [np.asarray(item.pictures[0]) for item in (one, two)]
    assert all(picture.max() > 100 for picture in pictures)
    assert not np.array_equal(*pictures)
