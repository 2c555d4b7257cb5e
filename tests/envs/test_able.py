"""What an ability cannot do, it says."""

import pytest

from k3.envs.able import TEXT, able
from k3.errors import RequestError


def shout(word):
    if not word:
        raise RequestError("a word is needed: got none; say one")
    return word.upper()


def test_mistakes_are_sentences_and_our_own_faults_are_not():
    ability = able("Shout.", shout, {"word": TEXT})
    assert ability.act(word="a") == "A"
    assert ability.act(word="") == "Error: a word is needed: got none; say one"
    with pytest.raises(AttributeError):
        ability.act(word=1)
