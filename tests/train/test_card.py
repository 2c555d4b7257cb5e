"""The card says what the run was, and nothing that is not in its arguments."""

from k3 import recipes
from k3.config import sizes
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
        f"{total:,} parameters, 9 layers (6 KDA and 3 MLA)",
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
    assert max(map(len, found.splitlines())) <= 110


def test_without_a_command_the_plain_one_is_named(text):
    assert "`k3 train tiny --out DIR`" in card.text(recipes.tiny(), text, RESULT, "")
