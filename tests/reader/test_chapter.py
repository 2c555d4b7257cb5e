"""Chapters are read as data, and refused in sentences with file and line."""

import pytest

from k3.errors import ConfigError
from k3.reader import chapter

HEAD = '```chapter\ntitle = "T"\nsummary = "S"\n```\n'


def parse(body):
    return chapter.parse("07-some-name.md", HEAD + body)


def test_prose_and_claims_keep_their_order():
    found = parse('one\n\n```claim\nid = "a"\nsection = "2"\ntext = "x"\n```\n\ntwo\n')
    kinds = [type(part).__name__ for part in found.parts]
    assert kinds == ["Prose", "Claim", "Prose"]
    assert (found.slug, found.claims[0].id) == ("some-name", "a")


def test_tex_needs_no_second_backslash():
    body = '```claim\nid = "a"\nsection = "2"\ntext = """\n$\\beta$\n"""\n```\n'
    assert parse(body).claims[0].text == "$\\beta$\n"


def test_other_fences_are_prose():
    (part,) = parse("```\nk3 env\n```\n").parts
    assert "k3 env" in part.text


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ('id = "a"\nsection = "2"', r"07-some-name.md:5: a claim needs every key"),
        ('id = "a"\nsection = "2"\ntext = ""\nprof = 1', "a claim has no key 'prof'"),
        ("id = ", "a block must be TOML"),
        ('id = "a"\nsection = "2"\ntext = ""\ncode = "b"', "code must be a list"),
    ],
)
def test_a_wrong_claim_is_refused(block, words):
    with pytest.raises(ConfigError, match=words):
        parse(f"```claim\n{block}\n```\n")


def test_the_chapters_of_the_package_are_numbered_as_their_files():
    files = [each.file for each in chapter.chapters()]
    assert files == sorted(files)
    assert len(files) >= 20
