"""Items: what is learned of them, and that the question is the example's beginning."""

import pytest
import torch

import k3
from k3.checkpoint import locate
from k3.data import tasks
from k3.errors import RequestError


@pytest.fixture(scope="module")
def tokenizer():
    return k3.tokenizer(locate.locate("tiny"))


@pytest.mark.parametrize("name", tasks.DRAWS)
def test_an_example_is_a_function_of_its_index_and_split(name, tokenizer):
    one, again = (tasks.named(name, tokenizer).example(7) for _ in range(2))
    assert torch.equal(one.ids, again.ids)
    assert torch.equal(one.learned, again.learned)
    assert one.domain == name
    other = tasks.named(name, tokenizer, "heldout").example(7)
    assert one.ids.tolist() != other.ids.tolist()


@pytest.mark.parametrize("name", tasks.DRAWS)
@pytest.mark.parametrize("split", tasks.SPLITS)
def test_a_question_is_the_example_up_to_its_first_learned_token(
    name, split, tokenizer
):
    task = tasks.named(name, tokenizer, split)
    for index in range(5):
        example, question = task.example(index), task.question(index)
        first = int(example.learned.nonzero()[0])
        assert question.ids == example.ids[:first].tolist()
        answer = tokenizer.decode(example.ids[example.learned].tolist())
        assert question.answer in answer
        assert (question.pixels is None) == (example.pixels is None)
        assert name != "digits" or len(question.grids) == 1


def test_a_passage_learns_the_end_behind_a_learned_part(tokenizer):
    read, both = (
        tasks.Passage(parts=(("a b", True), (" c", last))).example(tokenizer, "x")
        for last in (False, True)
    )
    assert read.ids.tolist() == both.ids.tolist()
    assert read.ids[0] == read.ids[-1] == tokenizer.eos_id
    assert not read.learned[-1]
    assert both.learned[1:].all()


def test_an_unknown_task_is_refused(tokenizer):
    with pytest.raises(RequestError, match=r"one of chat, .*: got 'chess'"):
        tasks.named("chess", tokenizer)


def test_a_vocabulary_sees_the_words_of_xtml_and_no_marker():
    found = tasks.texts(["tools", "recall"], 2)
    assert {"argument", "calculator", "message"} & set(found)
    assert any(text.startswith("Pairs: ") for text in found)
    assert not any("<|" in text for text in found)


def test_captions_put_each_picture_before_its_digit(tokenizer):
    task = tasks.named("digits", tokenizer)
    item = next(
        item for item in map(task.item, range(20)) if isinstance(item, tasks.Passage)
    )
    count = sum(learned for _, learned in item.parts)
    example, question = item.example(tokenizer, "digits"), item.question(tokenizer)
    assert example.grids.tolist() == [[1, 2, 2]] * count
    assert example.pixels.shape == (4 * count, 3, 14, 14)
    pad = tokenizer.special_id("<|media_pad|>")
    assert (example.ids == pad).sum() == count
    assert not example.learned[example.ids == pad].any()
    assert question.grids.tolist() == [[1, 2, 2]]
    assert question.ids == example.ids[: len(question.ids)].tolist()
