"""k3 prove: the list, one theorem, everything, the article's map, and the documents."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from k3 import proof
from k3.errors import ProofError
from k3.logic import smt
from k3.proof import graphs, listing

ROOT = Path(__file__).parents[2]
THEOREMS = proof.theorems()
NAMES = [*THEOREMS, *graphs.names()]
ARTICLE = proof.article()
# Theorems of the article by file; private ones are named as a group.
FILES = {
    "Config.": 10,
    "CausalScan.": 4,
    "KDA.": 5,
    "KDALayer.": 4,
    "GatedMLA.": 4,
    "AttnRes.": 9,
    "SiTU.": 5,
    "MXFP4Expert.": 4,
    "Route.": 11,
    "MoE.": 5,
    "QuantileHistogram.": 8,
    "Vision.": 3,
    "Microscaling.": 14,
    "PerHeadMuon.": 5,
    "Pretraining.": 2,
    "MOPD.": 3,
    "PostTraining.": 4,
    "ContextParallel.": 8,
    "MoonEP.": 4,
    "ChatTemplate.": 4,
    "GraphSpec.Expert.": 2,
    "GraphSpec.KDA.eval_": 15,
    "GraphSpec.Backbone.": 9,
}


def test_the_list_has_every_theorem_with_level_and_axioms(k3):
    found = k3("prove", "--json")
    assert found.code == 0
    assert [entry["name"] for entry in found.json] == NAMES
    by_name = {entry["name"]: entry for entry in found.json}
    assert by_name["scan.append_carries_state"]["level"] == "K"
    assert by_name["kda.retention_between"]["axioms"] == ["exp_add", "exp_tangent"]
    text = k3("prove").out
    assert all(name in text for name in NAMES)
    assert f"{len(NAMES)} theorems" in text


def test_one_theorem_is_proved_and_printed_for_a_person(k3):
    found = k3("prove", "situ.output_bound", "--explain")
    assert found.code == 0
    assert "|situ(gate_cap, up_cap, g, u)| ≤ gate_cap·up_cap" in found.out
    assert "  if 0 ≤ gate_cap\n" in found.out
    assert re.search(r"^level    KS: ", found.out, re.M)
    assert "axioms   exp_add, exp_tangent" in found.out
    assert re.search(r"refuted  half the product\n.* is false: .* against", found.out)
    assert "proof.reals.tanh_between" in found.out
    assert "\n  soft_cap\n" in found.out
    assert re.search(r"^  certificate +\d+$", found.out, re.M)


def test_json_has_the_hypotheses(k3):
    value = k3("prove", "situ.output_bound", "--json").json
    assert value["hypotheses"] == ["0 ≤ gate_cap", "0 ≤ up_cap"]
    assert value["digest"]
    assert len(value["mutants"]) >= 2


def test_a_graph_theorem_shows_sizes_inputs_and_both_values(k3):
    found = k3("prove", "graph.expert")
    assert "for all sizes D, F ≥ 1" in found.out
    assert re.search(r"^level    N: ", found.out, re.M)
    assert re.search(r"y\[0\]: graph \S+, reference \S+ \(", found.out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["append_carries"], "no theorem is called append_carries: scan.append_carr"),
        (["zzz"], "no theorem is called zzz: k3 prove lists them"),
        (["scan.simulation", "--all"], "prove takes one of NAME, --all and --article"),
    ],
)
def test_usage_is_exit_2(k3, arguments, message):
    found = k3("prove", *arguments)
    assert (found.code, found.out) == (2, "")
    assert message in found.err


def test_without_the_solvers_there_is_one_line_with_the_command(k3, monkeypatch):
    def missing():
        raise ProofError(smt.MISSING)

    monkeypatch.setattr(smt, "versions", missing)
    found = k3("prove", "scan.simulation")
    assert found.code == 2
    assert re.fullmatch(r"k3: .*pip install z3-solver\S* cvc5\S*\n", found.err)
    assert k3("prove").code == 0


def false_entry():
    """A theorem that is false among two that hold."""
    from k3.logic.sorts import REAL
    from k3.logic.syntax import forall, var
    from k3.proof.theorem import Theorem

    def cubes():
        x = var("x", REAL)
        return forall([x], x * x * x >= 0)

    first, last = list(THEOREMS.items())[:2]
    wrong = Theorem(statement=cubes, proof=first[1].proof, scope="all reals")
    return dict([first, ("test.cube", wrong), last])


def test_a_false_entry_is_exit_1_and_the_others_are_proved(k3, monkeypatch):
    module = importlib.import_module("k3.proof.prove")
    monkeypatch.setattr(module, "theorems", false_entry)
    monkeypatch.setattr(graphs, "names", lambda: ["graph.expert"])
    found = k3("prove", "--all", "--empty-cache", "--check-log")
    assert found.code == 1
    assert "3 theorems proved in" in found.out
    assert "\n1 theorem is not proved\n  test.cube is false: x = -" in found.out
    value = k3("prove", "--all", "--empty-cache", "--json")
    assert value.code == 1
    assert list(value.json["failures"]) == ["test.cube"]
    assert len(value.json["theorems"]) == 3


def test_a_failing_graph_theorem_is_named_too(k3, monkeypatch):
    def fails(name):
        raise ProofError(f"{name} is not decided: no")

    monkeypatch.setattr(proof, "prove_all", lambda **_: [])
    monkeypatch.setattr(graphs, "names", lambda: ["graph.expert", "graph.moe"])
    monkeypatch.setattr(graphs, "prove", fails)
    found = k3("prove", "--all")
    assert found.code == 1
    assert found.out.splitlines()[-3:] == [
        "2 theorems are not proved",
        "  graph.expert is not decided: no",
        "  graph.moe is not decided: no",
    ]


def test_all_prints_a_line_for_each_and_the_counts(k3, monkeypatch):
    asked = {}

    def prove_all(*, progress, **options):
        asked.update(options)
        record = proof.prove("scan.outputs_length")
        progress(record)
        return [record]

    monkeypatch.setattr(proof, "prove_all", prove_all)
    monkeypatch.setattr(graphs, "names", lambda: ["graph.expert"])
    found = k3("prove", "--all", "--seed", 5, "--empty-cache", "--check-log")
    asked_for = {"seed": 5, "cache": None, "check_log": True, "failures": {}}
    assert asked == asked_for
    first, second, *rest = found.out.splitlines()
    assert re.fullmatch(r"K  scan\.outputs_length +\d+\.\d\d s", first)
    assert re.fullmatch(r"N  graph\.expert +\d+\.\d\d s", second)
    assert re.fullmatch(r"2 theorems proved in \d+\.\d s, solver seed 5", rest[0])
    assert rest[1:3] == ["by level: K 1, N 1", "by scope: all sizes 2"]
    assert rest[3] == "wrong variants, each refuted: 5"
    assert rest[4] == "the second checker repeated every step of the log"


def test_everything_is_proved_and_what_is_written_down_is_what_was_proved():
    """In another process: the run-time type checks of the tests would triple it."""
    command = [sys.executable, "-m", "k3", "prove", "--all", "--empty-cache"]
    command += ["--check-log", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    written = json.loads((ROOT / "k3/proof/proved.json").read_text())
    assert list(written) == [record["name"] for record in found["theorems"]] == NAMES
    for record in found["theorems"]:
        kept = {key: record[key] for key in ("level", "axioms", "digest")}
        assert kept == written[record["name"]], "run tools/theorems.py"
    assert sum(found["counts"]["level"].values()) == len(NAMES)
    assert sum(found["counts"]["scope"].values()) == len(NAMES)
    assert found["mutants"] > 100
    assert found["log_checked"] is True
    named = {axiom for record in found["theorems"] for axiom in record["axioms"]}
    assert named == {"exp_add", "exp_tangent", "exp_log", "sqrt_square"}


def test_the_cache_of_verdicts_is_where_caches_are(k3, monkeypatch, tmp_path):
    from k3.cli import theorems

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert theorems.cache_file() == tmp_path / "k3" / "obligations.jsonl"


def test_every_file_with_theorems_is_among_the_concepts():
    found = {path.stem for path in (ROOT / "k3/proof").glob("*.py")}
    sources = {stem: (ROOT / f"k3/proof/{stem}.py").read_text() for stem in found}
    holding = {stem for stem, text in sources.items() if "\nTHEOREMS: " in text}
    assert holding == {name.split(".")[0] for name in NAMES} - {"graph"}


def test_the_written_list_is_current():
    assert (ROOT / "docs/theorems.md").read_text() == listing.markdown()
    limits = (ROOT / "docs/limits.md").read_text()
    assert limits == listing.with_reasons(limits)
    assert "?" not in listing.counts(listing.entries())["level"]


def claims(text):
    """Words of a document that look like theorems: `concept.name`."""
    concepts = {name.split(".")[0] for name in NAMES}
    for span in re.findall(r"`([a-z_]+\.[a-z_0-9]+)`", text):
        concept, _, name = span.partition(".")
        if concept in concepts and name not in ("py", "md", "json", "cpp", "h"):
            yield span


def test_no_theorem_is_claimed_without_a_proof_object():
    documents = [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/*.md")]
    found = [name for path in documents for name in claims(path.read_text())]
    assert len(found) >= 5
    assert set(found) <= set(NAMES)
    for path in documents:
        for number in re.findall(r"(\d+) theorems", path.read_text()):
            assert int(number) in (len(NAMES), len(ARTICLE)), path


def test_the_map_is_printed_whole(k3):
    found = k3("prove", "--article")
    assert found.code == 0
    assert len(found.out.splitlines()) == len(ARTICLE) + 1
    assert k3("prove", "--article", "--json").json == ARTICLE


@pytest.mark.parametrize("prefix", FILES)
def test_every_file_of_the_article_is_mapped(prefix):
    found = [name for name in ARTICLE if name.startswith(prefix)]
    assert len(found) == FILES[prefix]


def test_the_map_is_sorted_and_every_reason_is_in_the_limits():
    assert list(ARTICLE) == sorted(ARTICLE)
    limits = " ".join((ROOT / "docs/limits.md").read_text().split())
    for name, answer in ARTICLE.items():
        ((kind, what),) = answer.items()
        if kind == "limit":
            assert what in limits, (name, what)
        else:
            assert what in NAMES, (name, what)
