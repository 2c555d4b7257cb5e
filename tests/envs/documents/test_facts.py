"""Facts are read off sentences and off lines of Python."""

from k3.data.corpora.document import Document
from k3.envs.documents import facts


def test_sentences_of_the_six_forms_are_facts_in_their_order():
    text = "The river bo flows into the sea mu. kado lives in pi.\npi stands on the "
    text += "river bo. Nobody lives in. pi is a town of la. la is ruled by kado."
    found = facts.of_sentences(Document(name="n", text=text))
    assert [(f.subject, f.relation, f.value) for f in found] == [
        ("bo", "sea", "mu"),
        ("kado", "town", "pi"),
        ("pi", "river", "bo"),
        ("pi", "land", "la"),
        ("la", "ruler", "kado"),
    ]
    assert all(f.passage in text for f in found)


def test_bases_are_in_this_file_or_in_the_one_beside_it():
    text = "class A(B):\n    class Inner(C):\n        pass\n\nclass D(events.E, F):\n"
    text += "class G(events.E):\n    pass\nclass H: pass\n"
    found = facts.of_classes(Document(name="asyncio/x.py", text=text))
    assert [(f.subject, f.value, f.said) for f in found] == [
        ("A in asyncio/x.py", "B in asyncio/x.py", "B"),
        ("G in asyncio/x.py", "E in asyncio/events.py", "E"),
    ]
    assert found[1].passage == "class G(events.E):"


def test_what_is_said_twice_is_no_fact():
    text = "a lives in b. a lives in c. d lives in b."
    found = facts.of_sentences(Document(name="n", text=text))
    assert list(facts.unambiguous(found)) == [("d", "town")]


def test_a_query_is_the_sentence_up_to_what_is_asked():
    assert facts.query("bo", "sea") == '"The river bo flows into the sea "'
