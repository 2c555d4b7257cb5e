"""benchmarks/draft.py: what it compares, on which text, and what it refuses."""

import importlib.util
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from small import config, model

import k3
from k3.config.draft import DraftConfig
from k3.model.draft import Draft
from k3.serve.draft_eagle import EagleDraft

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.usefixtures("unchecked")
ASKED = {"k": 2, "tree": "2,1", "tokens": 20, "requests": 5, "repeats": 1}


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location("draft_bench", FOLDER / "draft.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def net():
    return model(made=config(attn_res_block_size=1))


@pytest.fixture(scope="module")
def draft(net):
    made = Draft(DraftConfig(text=net.config.text), torch.float32).start_(net)
    return made.requires_grad_(False)


def args(**changed):
    given = (
        ASKED | {"model": "none", "concurrency": [1, 4, 16], "clock": "wall"} | changed
    )
    return Namespace(**given)


def test_report_98_speed_with_and_without_a_draft_at_1_4_and_16(
    bench, net, draft, capsys
):
    bench.report(net, draft, args())
    said = capsys.readouterr().out
    rows = [line.split() for line in said.splitlines() if line[:11].strip().isdigit()]
    assert [row[0] for row in rows] == ["1", "4", "16"] * 3
    for _, accepted, per_row, plain, fast, *_ in rows:
        assert 0 <= float(accepted) <= 1
        assert float(per_row) >= 1
        assert float(plain) > 0
        assert float(fast) > 0
    assert "trained, tree 2,1" in said


def test_report_98_a_loop_and_another_text_are_not_reported(
    bench, net, draft, monkeypatch
):
    def make(texts, requests):
        return EagleDraft(draft)

    loop = bench.Run({"0": [1, 2] * 20}, tokens=39, rows=39, passes=39, seconds=1.0)
    monkeypatch.setattr(bench, "measure", lambda *given: loop)
    with pytest.raises(SystemExit, match=r"unique bigrams are 0\.05 of the tokens"):
        bench.compare(net, make, 2, args())
    runs = [loop, bench.Run({"0": [*range(40)]}, 39, 39, 0, 0, 39, 1.0)]
    monkeypatch.setattr(bench, "measure", lambda *given: runs.pop())
    with pytest.raises(SystemExit, match="drafting has changed the output"):
        bench.compare(net, make, 2, args())


def test_report_98_the_text_is_chat(bench):
    tiny = k3.load("tiny", dtype=torch.float32)
    asked = bench.asked(tiny, args(model="tiny", requests=3))
    tokenizer = k3.tokenizer("tiny")
    for request in asked:
        text = tokenizer.decode(request.tokens)
        assert '<|open|>message role="user"' in text
        assert tokenizer.special_id("<|end_of_msg|>") in request.options.stop_ids


def test_the_law_of_few_samples(bench):
    law, net = bench.draft_law, model(made=config(attn_res_block_size=1))
    with torch.no_grad():
        net.language_model.lm_head.weight.mul_(8)
    wanted = law.law(net, (5, 9, 2), 1e-3)
    assert all(len(text) == 4 for text in wanted)
    assert sum(wanted.values()) < 1
    draft = Draft(DraftConfig(text=net.config.text), torch.float32).start_(net)
    eagle = EagleDraft(draft.requires_grad_(False))
    said = law.compare(net, eagle, 2, (5, 9, 2), 130)
    assert said.startswith("130 samples of 4 tokens: chi-square")
    with pytest.raises(SystemExit, match="no text is likely enough"):
        law.compare(net, eagle, 2, (5, 9, 2), 5)
    exact = {text: round(1000 * p) for text, p in wanted.items()}
    exact[0, 0, 0, 0] = exact.get((0, 0, 0, 0), 0) + 1000 - sum(exact.values())
    fair, degrees = law.chi_square(exact, wanted, 1000)
    assert fair < degrees
    wrong = dict(zip(exact, reversed(exact.values()), strict=True))
    assert law.chi_square(wrong, wanted, 1000)[0] > 5 * degrees


@pytest.mark.slow
@pytest.mark.parametrize("tree", [None, "2,2"])
def test_a_hundred_thousand_samples_have_the_targets_law(bench, tree):
    """Of the shipped model, with a draft before training, two tokens deep."""
    tiny = k3.load("tiny", dtype=torch.float32)
    begun = Draft(DraftConfig(text=tiny.config.text), torch.float32).start_(tiny)
    shape = bench.Tree.of([2, 2]) if tree else None
    eagle = EagleDraft(begun.requires_grad_(False), shape)
    prompt = bench.prompts(tiny, "tiny", 1)[0][-12:]
    said = bench.draft_law.compare(tiny, eagle, 2, prompt, 100_000)
    assert abs(float(said.split(" deviations")[0].split()[-1])) < 4
