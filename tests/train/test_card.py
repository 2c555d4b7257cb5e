"""The card says what the run was, and nothing that is not in its arguments."""

import dataclasses

from k3 import recipes
from k3.config import K3Config, sizes
from k3.train import card, pretrain

RESULT = pretrain.Result(
    directory="runs/tiny",
    steps=1500,
    tokens=3_072_000,
    seconds=1800.0,
    bits_per_byte=1.51234,
    xz=1.8646,
    xz_alone=2.2807,
    kneser_ney=1.9133,
)


def test_numbers_of_the_run(text):
    recipe = recipes.tiny()
    found = card.text(recipe, text, RESULT, "k3 train tiny --out DIR")
    total = sizes.parameters(recipe.config).total
    for part in (
        f"{total:,} parameters, 9 layers (6 KDA and 3\nMLA)",
        "**1.5123**",
        "1.8646",
        "2.2807",
        "1.9133",
        "| tokens | 3,072,000 |",
        "1,500 of 4 x 512 tokens",
        "30 minutes on 2 CPU threads",
        f"`{text.sha256}`",
        "`k3 train tiny --out DIR`",
        'such as "Return True if" at temperature 0.7',
    ):
        assert part in found
    assert not [line for line in found.splitlines() if len(line) > 110]


def test_stages_follow_one_another(text):
    recipe = recipes.tiny().set({"stages": "0.9:512:4,0.1:1024:2"})
    found = card.text(recipe, text, RESULT, "")
    assert "| steps | 1,500 of 4 x 512, then 2 x 1024 tokens |" in found


def test_without_a_command_the_plain_one_is_named(text):
    assert "`k3 train tiny --out DIR`" in card.text(recipes.tiny(), text, RESULT, "")


def test_a_mixture_names_its_tasks_and_where_the_digits_are_from(text):
    shares = (("text", 0.6), ("digits", 0.15), ("recall", 0.05))
    mixed = dataclasses.replace(recipes.tiny(), mixture=shares, optimizer="muon")
    found = card.text(mixed, text, RESULT, "")
    assert "| of them | 75% text, 19% digits, 6% recall |" in found
    assert "Synthetic tasks: digits, recall." in found
    assert "UCI Machine Learning Repository" in found
    assert "Muon and AdamW, learning rate" in found
    assert "beside the tasks it knows nothing else" in found
    plain = dataclasses.replace(mixed, mixture=(("text", 1.0),), optimizer="adamw")
    found = card.text(plain, text, RESULT, "")
    assert "Synthetic" not in found
    assert "| optimizer | AdamW" in found
    assert "answers no questions" in found


def test_a_model_without_a_tower_reads_text_alone(text):
    data = recipes.tiny().config.to_dict() | {"vision_config": None}
    blind = dataclasses.replace(recipes.tiny(), config=K3Config.from_dict(data))
    assert "Text in, text out: " in card.text(blind, text, RESULT, "")
