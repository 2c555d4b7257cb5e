import re

import pytest

import k3.graph as graph
from k3.graph import primitives as p
from k3.graph import render
from k3.graph.term import let

DOT_NODE = re.compile(
    r'  (\w+) \[label="((?:[^"\\]|\\.)*)", shape=\w+(, style=\w+)?\];'
)
DOT_EDGE = re.compile(r"  (\w+) -> (\w+);")


@pytest.mark.parametrize("name", graph.catalogue)
def test_dot_is_a_graph_of_declared_nodes(name):
    block = graph.get(name)
    lines = graph.show(name, "dot").splitlines()
    assert lines[0] == f'digraph "{name}" {{'
    assert lines[-1] == "}"
    declared, edges = set(), []
    for line in lines[2:-1]:
        if match := DOT_NODE.fullmatch(line):
            declared.add(match[1])
        else:
            edges.append(DOT_EDGE.fullmatch(line).groups())
    assert len(declared) == len(block.nodes) + len(block.outputs)
    assert {n for edge in edges for n in edge} <= declared
    operands = sum(len(node.args) for node in block.nodes)
    assert len(edges) == operands + len(block.outputs)


@pytest.mark.parametrize("name", graph.catalogue)
def test_latex_is_balanced_and_names_every_output(name):
    text = graph.show(name, "latex")
    bare = re.sub(r"\\[{}]", "", text)
    depth = 0
    for letter in bare:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        assert depth >= 0
    assert depth == 0
    assert text.count(r"\left") == text.count(r"\right")
    for output in graph.get(name).outputs:
        escaped = output.replace("_", r"\_")
        assert rf"  \mathrm{{{escaped}}}" in text
    assert "None" not in text


def test_latex_of_equation_1():
    text = graph.show("kda_update", "latex")
    assert r"\sum_{k} \mathrm{k}_{hk} \, \mathrm{decayed}_{hkv}" in text
    assert r"\mathrm{S} &= \mathrm{decayed} + \mathrm{written} && [H \times K" in text


def test_latex_of_one_term():
    x = p.real("x", "D")
    text = render.latex(let("y", 4 * p.tanh(x / 4)))
    assert r"\mathrm{y} &= 4 \, \left(\tanh\left(\frac{\mathrm{x}}{4}\right)" in text


def test_text_names_the_lines():
    text = graph.show("expert")
    assert text.startswith("expert: Eq. 12: W_down SiTU(W_gate x, W_up x).")
    assert re.search(r"tanh %\d+ .*\[F\] .*k3/graph/situ.py:\d+", text)


def test_dot_escapes_names():
    x = p.real('a "quoted" \\ name', "D")
    text = render.dot(let("y", p.exp(x)))
    assert r"a \"quoted\" \\ name" in text
