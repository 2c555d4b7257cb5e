"""A claim as a row: link, code that is no wall, evidence, and what is missing."""

import re

from k3.reader import row, source
from k3.reader.chapter import Claim, chapters

GIVEN = {"id": "a-claim", "section": "2.1.1", "text": "words"}


def show(**given):
    return row.show(Claim(**{**GIVEN, **given}))


def test_section_and_equation_link_to_the_report():
    shown = show(equation="1")
    assert f'<a href="{row.REPORT}">§2.1.1, Eq. 1</a>' in shown
    assert "#page=5" in show(page=5)
    assert ">App. C<" in show(section="App. C")


def test_a_claim_without_evidence_is_a_passage_and_its_mark():
    shown = show()
    assert "<details" not in shown
    assert "reported only" in shown
    assert 'class="live"' not in shown


def test_code_stands_open_as_long_as_it_is_no_wall():
    for chapter in chapters()[:5]:
        for claim in chapter.claims:
            shown = row._code(claim)
            opened = re.findall(
                r'<details class="code" open>.*?</details>', shown, re.S
            )
            assert opened or not claim.code
            lines = sum(each.count('<span class="i') for each in opened)
            first = source.find(claim.code[0]).text.count("\n") + 1 if claim.code else 0
            assert lines <= max(row.MOST_LINES, first), claim.id


def test_what_runs_is_folded():
    assert " open" not in show(runs=("k3.kernels.kda:step",)).partition("evidence")[2]


def test_a_name_that_does_not_exist_is_said_in_place():
    for given in (
        {"code": ("k3.spec.kda:none",)},
        {"theorems": ("none.at_all",)},
        {"graph": "none"},
        {"widget": "none"},
    ):
        assert 'class="absent"' in show(**given), given


def test_the_boundary_stands_in_the_passage():
    assert "<b>Stops at</b> here" in show(limits="here")
