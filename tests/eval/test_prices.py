"""Prices: what tokens cost, and tables that are refused."""

import json

import pytest

from k3.errors import RequestError
from k3.eval import prices
from k3.eval.prices import Price

TABLE = {
    "currency": "EUR",
    "dated": "2026-11-30",
    "source": "made up for this test",
    "models": {"toy": {"input": 2, "cached": 0.5, "output": 8.0}},
}


def write(folder, table):
    file = folder / "prices.json"
    file.write_text(table if isinstance(table, str) else json.dumps(table))
    return file


def test_a_table_is_read_and_a_task_costs_its_samples(tmp_path):
    found = prices.load(write(tmp_path, TABLE))
    assert (found.currency, found.dated) == ("EUR", "2026-11-30")
    toy = found.named("toy")
    usage = {"read": 1_000_000, "cached": 400_000, "written": 250_000}
    assert toy.of(usage) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.25 * 8)
    records = [
        {"index": index, "usage": {"read": 0, "cached": 0, "written": 125_000 * times}}
        for index, times in ((0, 1), (0, 1), (1, 4))
    ]
    figure = prices.cost(records, toy)
    assert (figure.name, figure.count, figure.value) == ("cost", 2, 3.0)
    assert 2.0 <= figure.low <= 3.0 <= figure.high <= 4.0


def test_a_model_without_a_price_is_refused(tmp_path):
    found = prices.load(write(tmp_path, TABLE))
    with pytest.raises(RequestError, match="the price table has toy: got 'tiny'"):
        found.named("tiny")
    with pytest.raises(RequestError, match="needs the tokens of every answer"):
        prices.cost([{"index": 0}], Price(input=1, cached=1, output=1))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("{", "a price table is a JSON file"),
        ([], "must have an object with currency"),
        ({"extra": 1}, "must have an object with currency, dated, source, models:"),
        ({"currency": ""}, "must have currency, dated and source in words"),
        ({"dated": "30.11.2026"}, "must have a date in `dated`"),
        ({"models": {}}, "a price for at least one model"),
        ({"models": {"toy": {"input": 1}}}, "input, cached, output for toy"),
        (
            {"models": {"toy": {"input": -1, "cached": 0, "output": 0}}},
            "input of toy as a number of at least 0",
        ),
        (
            {"models": {"toy": {"input": 0, "cached": True, "output": 0}}},
            "cached of toy",
        ),
        ('{"currency": NaN}', "must have an object"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path, change, sentence):
    table = TABLE | change if isinstance(change, dict) else change
    with pytest.raises(RequestError, match=sentence):
        prices.load(write(tmp_path, table))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(RequestError, match=r"a price table is a JSON file: .*none"):
        prices.load(tmp_path / "none.json")
