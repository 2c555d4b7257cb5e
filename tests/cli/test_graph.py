"""k3 graph: the list, the forms, a run on random inputs."""

import json

import pytest

from k3 import graph


def test_the_list_says_what_each_step_is(k3):
    found = k3("graph")
    assert found.code == 0
    assert [line.split()[0] for line in found.out.splitlines()] == [*graph.catalogue]
    assert (
        "expert                   Eq. 12: W_down SiTU(W_gate x, W_up x)." in found.out
    )
    assert k3("graph", "--json").json["moe"].startswith("Eq. 11 and 13")


@pytest.mark.parametrize(
    ("form", "start"),
    [([], "expert: Eq. 12"), (["--dot"], "digraph"), (["--latex"], r"\begin{aligned}")],
)
def test_the_forms(k3, form, start):
    found = k3("graph", "expert", *form)
    assert found.code == 0
    assert found.out.startswith(start)


def test_json_is_what_load_reads_back(k3):
    found = k3("graph", "kda_update", "--json")
    assert json.loads(found.out)["schema"] == "k3.graph/1"
    block = graph.load(found.out)
    assert graph.run("kda_update")["outputs"].keys() == block.outputs.keys()


def test_a_run_prints_shapes_and_outputs(k3):
    found = k3("graph", "expert", "--run")
    assert "expert with D=5 F=4" in found.out
    assert "in   up_proj.weight [4, 5]\n" in found.out
    value = graph.run("expert")["outputs"]["y"]
    assert "     " + "  ".join(f"{v:.6g}" for v in value) in found.out
    seeded = k3("graph", "expert", "--run", "--seed", 4, "--json").json
    assert seeded == graph.run("expert", seed=4)


def test_a_matrix_is_printed_a_row_a_line(k3):
    found = k3("graph", "kda_update", "--run").out
    rows = found.split("out  S [2, 3, 4]\n")[1].split("out  o")[0].splitlines()
    assert [len(row.split()) for row in rows] == [4] * 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["kdq"], "a graph must be one of expert, kda_update"),
        (["--dot"], "a form needs the NAME of a graph"),
        (["expert", "--dot", "--latex"], "graph takes one of --dot, --latex, --run"),
        (["expert", "--dot", "--json"], "only --run goes with --json"),
    ],
)
def test_usage_is_exit_2(k3, arguments, message):
    found = k3("graph", *arguments)
    assert found.code == 2
    # Errors are data where data was asked for.
    assert bool(found.out) == ("--json" in arguments)
    assert message in found.err
