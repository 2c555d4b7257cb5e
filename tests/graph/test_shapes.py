"""Every refusal: the rule, both shapes, the primitive and the line, what to do."""

import inspect

import pytest

from k3.errors import ShapeError
from k3.graph import primitives as p
from k3.graph import shapes
from k3.graph.attributes import ATTRIBUTES
from k3.graph.dims import plus, times
from k3.graph.evaluate import RULES as EVALUATE
from k3.graph.latex import RULES as LATEX
from k3.graph.term import spread


def r(*shape):
    return p.real("x" + "".join(map(str, shape)), ", ".join(map(str, shape)))


def ints(*shape, below=None):
    return p.integer("i", ", ".join(shape), below)


WRONG = {
    "add": (lambda: r("H") + r("K"), r"one shape.*\[H\] and \[K\].*broadcast"),
    "mul": (lambda: r("H", "K") * r("K", "H"), r"\[H, K\] and \[K, H\]"),
    "add of kinds": (lambda: r("H") + ints("H"), "both integers.*int"),
    "contract": (
        lambda: p.contract("ij,j->i", r("H", "K"), r("V")),
        r"axis j of ij,j->i must have one size, not K and V: got \[H, K\] and \[V\]",
    ),
    "contract rank": (lambda: p.contract("i,j->i", r("H", "K"), r("V")), "every axis"),
    "contract result": (lambda: p.contract("i->j", r("H")), "'j' must name axes"),
    "contract text": (lambda: p.contract("i1->i", r("H", "K")), "groups of letters"),
    "matmul": (lambda: p.matmul(r("H", "K"), r("V", "D")), "not K and V"),
    "matmul batch": (lambda: p.matmul(r("H", "K"), r("K")), "common batch"),
    "rms_norm": (lambda: p.rms_norm(r("H", "K"), r("H")), "shape of the last axis"),
    "softmax": (lambda: p.softmax(r()), "a scalar has none"),
    "reshape": (
        lambda: p.reshape(r("H", "K"), times("K", "H")),
        r"reshape to \[K\*H\] must keep the axes in their order: got \[H, K\]",
    ),
    "permute": (lambda: p.permute(r("H", "K"), 0, 0), "name each axis once"),
    "broadcast": (lambda: spread(r("H"), ("H", "K"), 1), "must be the operand's"),
    "concat": (lambda: p.concat(r("H", "K"), r("H", "V")), "every axis but 0"),
    "slice": (lambda: p.cut(r("H"), 0, "K"), "rows 0 to K must lie in H"),
    "slice end": (lambda: p.cut(r(plus("R", "r")), "R", plus("r", 1)), "R\\+r\\+1"),
    "stack": (lambda: p.stack(r("H"), r("K")), "one type"),
    "flip": (lambda: p.flip(r("H"), axis=1), "axis 1 must be one of"),
    "sum": (lambda: p.total(r("H"), 2), "axis 2 must be one of"),
    "gather": (
        lambda: p.gather(r("E", "F"), ints("A", below="V")),
        r"below the size of axis 0, E: got \[E, F\] and \[A\] int below V",
    ),
    "gather by reals": (lambda: p.gather(r("E"), r("A")), "must be integers"),
    "topk": (lambda: p.topk(r("E"), plus("E", 1)), r"k = E\+1 must be at least 1"),
    "topk of none": (lambda: p.topk(r("E"), 0), "k = 0"),
    "one_hot": (lambda: p.one_hot(ints("A")), "within"),
    "where": (lambda: p.where(r("H"), r("H"), r("H")), "choice must be boolean"),
    "where branches": (
        lambda: p.where(p.equal(ints("H"), ints("H")), r("H"), ints("H")),
        "both branches",
    ),
    "equal": (lambda: p.equal(r("H"), r("H")), "compares integers"),
    "less": (lambda: p.less(r("H"), r("K")), "reals of one shape"),
    "less of integers": (lambda: p.less(ints("H"), ints("H")), "must be real"),
    "count": (lambda: p.count(r("H")), "takes booleans"),
    "before": (lambda: p.before(r("H")), "sums integers"),
    "within": (lambda: p.within(r("H"), "H"), "takes integers"),
    "exp": (lambda: p.exp(ints("H")), "operands must be real"),
}


@pytest.mark.parametrize("name", WRONG)
def test_refusals(name):
    build, message = WRONG[name]
    with pytest.raises(ShapeError, match=message) as caught:
        build()
    text = str(caught.value)
    line = inspect.getsourcelines(build)[1]
    at = text.split("tests/graph/test_shapes.py:")[1]
    assert 0 <= int(at.split(";")[0]) - line <= 2, text
    assert text.split(":")[0] in shapes.RULES


def test_the_line_is_the_builders(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("from k3.graph import primitives as p\n\nx = p.real('x', 'D')\n")
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    assert space["x"].line == "mine.py:3"


def test_every_primitive_has_every_rule():
    assert EVALUATE.keys() | {"input"} == shapes.RULES.keys()
    assert LATEX.keys() == shapes.RULES.keys()
    assert shapes.RULES.keys() >= ATTRIBUTES.keys()
    assert shapes.RULES.keys() >= shapes.ARITY.keys() | shapes.MANY


def test_truth_of_a_term():
    with pytest.raises(ShapeError, match="no truth value: got input"):
        bool(r("H"))
