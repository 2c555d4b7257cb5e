"""The article's worked numbers stand in the chapters, computed and not typed."""

import pytest

from k3.reader import check, worked
from k3.reader.chapter import chapters

NUMBERS = {
    "kda": {"7.4", "5.25", "2.25"},
    "situ": {"1.848469", "9.585417", "-8.156066"},
    "mla": {"576", "30,720", "73,728", "3,932,160"},
    "experts": {"3/7", "4/7"},
    "post-training": {"2.169"},
    "mx": {"3.00", "0.30"},
    "draft": {"0.70"},
    "attn-res": {"9"},
    "prefix-cache": {"2,560"},
    "quantile-balancing": {"[4, 0, 2]", "[2, 2, 2]"},
}


@pytest.mark.parametrize("slug", NUMBERS)
def test_numbers_of_the_article_are_computed(slug):
    [chapter] = [each for each in chapters() if each.slug == slug]
    given = [e for _, text in check.texts(chapter) for e in worked.find(text)]
    assert NUMBERS[slug] <= {worked.value(each).shown for each in given}


def test_every_chapter_says_where_equality_stops():
    for chapter in chapters():
        headings = [text for _, text in check.texts(chapter) if "\n## " in text]
        assert any("## Where equality stops" in text for text in headings), chapter.file
        assert chapter.parts[0].text.strip()[0] not in "#|", chapter.file
        assert all(claim.limits for claim in chapter.claims), chapter.file
