"""The model in the package: its files, its promises, its recipe."""

import dataclasses
import re

import pytest

import k3
from k3 import eval as evaluation
from k3 import recipes
from k3.checkpoint import locate
from k3.data.corpora import Document
from k3.model.generate import GenerateOptions, generate
from k3.train import evaluate

FILES = {
    "README.md",
    "config.json",
    "generation_config.json",
    "model-00001-of-000001.safetensors",
    "model.safetensors.index.json",
    "tiktoken.model",
    "tokenizer_config.json",
}
FIRST_BITS = 1.7798
"""Bits per byte of the first shipped model, which knew text alone."""


@pytest.fixture(scope="module")
def tiny():
    return k3.load("tiny"), k3.tokenizer(locate.locate("tiny"))


def test_files_are_complete_and_small():
    paths = list(locate.locate("tiny").iterdir())
    assert {path.name for path in paths} == FILES
    assert sum(path.stat().st_size for path in paths) < 5_000_000


def test_it_is_what_the_recipe_trains(tiny):
    model, tokenizer = tiny
    assert model.config == recipes.tiny().config
    assert tokenizer.num_ranks == recipes.tiny().num_ranks
    assert tokenizer.eos_id == model.config.eos_token_id


def test_the_card_says_that_it_beats_the_first_one_and_both_baselines():
    card = (locate.locate("tiny") / "README.md").read_text()
    bits = float(re.search(r"\*\*(\d\.\d{4})\*\*", card)[1])
    xz = float(re.search(r"\(the bar\) \| (\d\.\d{4})", card)[1])
    smoothed = float(re.search(r"same text \| (\d\.\d{4})", card)[1])
    assert bits < FIRST_BITS < xz < smoothed


@pytest.mark.parametrize(
    ("task", "figure"), [("digits", "right"), ("recall", "right"), ("tools", "valid")]
)
def test_the_card_says_that_a_task_is_right_in_95_of_100(task, figure):
    card = (locate.locate("tiny") / "README.md").read_text()
    share = re.search(rf"\| {task} \| {figure} \| \d{{3}} \| ([\d.]+) \|", card)[1]
    assert float(share) >= 0.95


def test_it_reads_a_topic_that_was_kept_aside(tiny):
    from pydoc_data import topics

    text = topics.topics["atom-literals"].strip()
    document = Document(name="topic:atom-literals", text=text)
    assert evaluate.bits_per_byte(*tiny, [document], 512) < 1.7


def test_it_writes_words(tiny):
    model, tokenizer = tiny
    prompt = tokenizer.encode("Return True if")
    options = GenerateOptions(max_tokens=32, temperature=0.0)
    (answer,) = generate(model, [prompt], options, tokenizer=tokenizer)
    assert len(re.findall(r"\b(?:the|a|is|of|to|in|and|that)\b", answer.text)) >= 4


@pytest.mark.parametrize(
    ("task", "count"), [("digits", 20), ("recall", 20), ("tools", 6)]
)
def test_it_does_what_its_card_says_on_the_first_questions(tiny, task, count):
    protocol = dataclasses.replace(evaluation.named(task), count=count)
    assert evaluation.run(*tiny, protocol).score.value >= 0.8
