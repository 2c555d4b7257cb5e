"""Each claim holds on the right program and fails on a mutant, which is located."""

import re

import pytest
import small
import torch

from k3.errors import ProofError, RequestError
from k3.kernels import choose, conv, kda, mx
from k3.model.cache import KDACache
from k3.serve import PrefixCache, speculate
from k3.verify import refine
from k3.verify.exact.pairs import kda as kda_pairs
from k3.verify.exact.report import Report
from k3.verify.refine import check, same, stream
from k3.verify.refine.restore import program

# The shapes of the program are checked where its layers are tested.
pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def model():
    return small.model(torch.float32)


def run(name, model, **options):
    given = {"tokens": 20, "exact": False} | options
    return refine.run(name, refine.Setting(model=model, **given))


@pytest.mark.parametrize("name", refine.CLAIMS)
def test_it_holds(model, name):
    outcome = run(name, model)
    assert outcome.ok, outcome
    assert outcome.verdict == ("holds" if name != "quant" else "not checked")
    assert len(outcome.theorems) == len(refine.CLAIMS[name].theorems)
    assert {t.level for t in outcome.theorems} <= {"K", "KS", "N"}
    assert f"level {outcome.theorems[0].level}" in str(outcome)


def wrong_step(q, k, v, g, beta, *, state):
    """The step without its write strength."""
    return original_step(q, k, v, g, torch.ones_like(beta), state=state)


def stale_window(x, weight, window, lens=None):
    """The window is handed over as it came."""
    y, _ = original_conv(x, weight, window, lens)
    return y, window


def forgetful(*tokens, state, **options):
    """The tiles start from nothing."""
    return original_chunk(*tokens, state=torch.zeros_like(state), **options)


def keeps_all(self, n):
    """A rewind that takes nothing back of KDA's memory and window."""
    held = self.state, self.window
    original_rewind(self, n)
    self.state, self.window = held


def restored_wrong(self, tokens, *, keep_inputs=0):
    """One number of a restored memory is off."""
    state, cached = original_restore(self, tokens, keep_inputs=keep_inputs)
    if cached:
        state.caches[1].state[0, 2, 3, 1] += 0.5
    return state, cached


original_step, original_chunk = kda.step, kda.chunk
original_rewind = KDACache.rewind
original_conv, original_restore = conv.short_conv, PrefixCache.restore
MUTANTS = {
    "stream": (kda, "step", wrong_step, "layers.0.self_attn, token"),
    "chunk": (conv, "short_conv", stale_window, "layers.0.self_attn, token 15"),
    "cache": (PrefixCache, "restore", restored_wrong, "layers.1.state"),
    "spec": (KDACache, "rewind", keeps_all, "token"),
    "context": (kda, "chunk", forgetful, "KDA layer 0, out at [15"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_fails_and_is_located(model, name, monkeypatch):
    where, attribute, wrong, place = MUTANTS[name]
    monkeypatch.setattr(where, attribute, wrong)
    with choose.use("torch"):
        outcome = run(name, model)
    assert outcome.verdict == "FAILS"
    found = [c.first for c in outcome.checks if not c.ok]
    assert any(place in first for first in found), found
    assert outcome.to_dict()["ok"] is False


def accepts_all(blocks, usable, logits):
    """Every drafted token passes."""
    for block in blocks:
        block.accepted = block.drafted
    return [[*block.proposal.ids, 0] for block in blocks]


def test_the_engine_that_serves_is_what_runs(model, monkeypatch):
    monkeypatch.setattr(speculate, "_emit", accepts_all)
    outcome = run("spec", model)
    found = {c.what: c for c in outcome.checks if not c.ok}
    assert list(found) == [
        "the serving engine, 4 rows with drafts of 3: the text of plain decoding"
    ]
    assert "row 0, token" in outcome.checks[-1].first


def test_what_the_engine_stored_is_a_cold_run(model, monkeypatch):
    def rewinds_nothing(self, n):
        return original_rewind(self, n if len(n) == 1 else (0,) * len(n))

    assert run("spec", model, tokens=40).checks[-1].what.endswith("a run over them")
    monkeypatch.setattr(KDACache, "rewind", rewinds_nothing)
    outcome = run("spec", model, tokens=40)
    assert "the serving engine" in next(c for c in outcome.checks if not c.ok).what


@pytest.fixture(scope="module")
def packed():
    from k3.checkpoint import load

    return load.load(small.TINY, experts="packed", dtype=torch.float32)


def test_packed_weights_hold_and_a_mutant_fails(packed, monkeypatch):
    outcome = run("quant", packed)
    assert outcome.verdict == "holds", outcome
    original = mx.decode

    def high_first(words, scale, dtype, *, out=None):
        return original((words << 4) | (words >> 4), scale, dtype, out=out)

    monkeypatch.setattr(mx, "decode", high_first)
    outcome = run("quant", packed)
    assert outcome.verdict == "FAILS"
    assert "experts.w1" in outcome.checks[0].first


def tiny():
    from mutants import checks

    return checks.model()


@pytest.mark.parametrize(
    "name", ["stream", pytest.param("spec", marks=pytest.mark.slow)]
)
def test_exactly(name):
    outcome = run(name, tiny(), tokens=8, exact=True, seeds=1)
    assert outcome.ok, outcome
    exact = [c for c in outcome.checks if c.kind == "exact"]
    assert "EQUAL" in exact[0].detail
    assert "(1 seed, 50 bits)" in exact[0].detail


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stream", "spec", "cache"])
def test_two_seeds_print_a_bound_of_a_millionth(name):
    outcome = run(name, tiny(), tokens=8, exact=True)
    (whole,) = [c for c in outcome.checks if c.kind == "exact"]
    shown = re.search(r"error bound (\S+) \(2 seeds, 50 bits\)", whole.detail)
    assert float(shown[1]) <= 1e-6


def test_seeds_raise_the_bound_to_their_power():
    one, two = (
        kda_pairs.memory("step", (1,)).check(covering=False, seeds=n) for n in (1, 2)
    )
    assert two.bound == pytest.approx(one.bound**2)
    with pytest.raises(RequestError, match="at least 1 seed: got 0"):
        refine.Setting(model=tiny(), seeds=0)


def test_exactly_a_mutant_is_located(monkeypatch):
    monkeypatch.setattr(kda, "step", wrong_step)
    setting = refine.Setting(model=tiny(), tokens=8, seeds=1)
    found = stream.whole(setting, [1, 1], "token by token")
    assert not found.ok
    assert found.first.startswith("layers.0.self_attn[")


def test_programs_of_other_sizes_differ():
    model = tiny()
    one = program(model, lambda m: m(torch.tensor([[1, 2]]))[0])
    two = program(model, lambda m: m(torch.tensor([[1, 2, 3]]))[0])
    report = same.same(one, two, refine.Setting(model=model), inside=False)
    assert "shape" in report.first


def test_a_large_model_is_skipped_and_said_so(model, monkeypatch):
    monkeypatch.setattr(check, "EXACT_PARAMETERS", 10)
    setting = refine.Setting(model=model, tokens=8)
    found = stream.whole(setting, [1, 1], "token by token")
    assert found.kind == "skipped"
    assert "too many parameters" in found.line()


def test_native_kernels_are_held_against_their_twin(model, monkeypatch):
    outcome = run("stream", model)
    (twin,) = [c for c in outcome.checks if c.what.startswith("native kernels")]
    assert twin.kind == ("float" if choose.ready() else "skipped")
    monkeypatch.setattr(conv, "short_conv", stale_twin)
    outcome = run("stream", model)
    (twin,) = [c for c in outcome.checks if c.what.startswith("native kernels")]
    assert twin.ok is not choose.ready()


def stale_twin(x, weight, window, lens=None):
    """PyTorch's form alone reads the taps backwards."""
    return original_conv(x, weight.flip(-1), window, lens)


def test_the_options_change_what_runs(model):
    one, other = (refine.Setting(model=model, seed=s).ids for s in (0, 1))
    assert one != other
    assert len(refine.Setting(model=model, tokens=11).ids) == 11
    assert run("chunk", model, tolerance=1e-12).verdict == "FAILS"
    with pytest.raises(RequestError, match="at least 8 tokens: got 3"):
        refine.Setting(model=model, tokens=3)


def test_theorems_must_exist():
    with pytest.raises(ProofError, match=r"got scan\.no_such"):
        check.theorems(("scan.simulation", "scan.no_such"))


def test_every_split_is_the_whole():
    for tokens in (8, 17, 40):
        for seed in range(5):
            assert all(sum(s) == tokens for s in stream.splits(tokens, seed))
            assert all(min(s) > 0 for s in stream.splits(tokens, seed))


def test_a_report_without_bound_prints():
    found = check.exactly("x", Report(equal=False, problem="names differ"))
    assert found.first == "names differ"
    assert not found.ok
