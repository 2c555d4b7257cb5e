"""The second checker accepts true logs and rejects tampered ones."""

import ast
import json
from pathlib import Path

import pytest

from k3.errors import ProofError
from k3.logic import auto, check, kernel, log
from k3.logic.recursion import recursive
from k3.logic.sorts import REAL, list_of
from k3.logic.syntax import conj, cons, eq, forall, implies, nil, real, var

x, y = var("x", REAL), var("y", REAL)
xs, ys = var("xs", list_of(REAL)), var("ys", list_of(REAL))


def run(lines, **options):
    return check.check([json.dumps(line) for line in lines], **options)


def test_a_true_log_is_accepted(proved, lines):
    found = run(lines, statements={k: log.digest(t.concl) for k, t in proved.items()})
    assert found.keys() == proved.keys()
    for name, th in proved.items():
        assert found[name].level == log.level(th)
        assert set(found[name].axioms) == {a for a, _ in th.axioms}


def test_every_rule_is_in_the_log(lines):
    from k3.logic.check_rules import RULES

    used = {line["rule"] for line in lines if "rule" in line}
    assert set(RULES) - used == set()


def test_the_checker_shares_no_code_with_the_kernel():
    for path in Path(check.__file__).parent.glob("check*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("k3"):
                names = {f"{node.module}.{a.name}" for a in node.names}
                ok = node.module == "k3.errors" or all(
                    n.startswith("k3.logic.check") for n in names
                )
                assert ok, names


def test_a_theorem_under_another_name_is_rejected(proved, lines):
    wanted = {"square": log.digest(proved["bound"].concl)}
    with pytest.raises(ProofError, match="square states other"):
        run(lines, statements=wanted)
    with pytest.raises(ProofError, match="absent is missing"):
        run(lines, statements={"absent": "0"})


def test_what_is_not_json_is_rejected():
    with pytest.raises(ProofError, match="rejected"):
        check.check(["{"])


def test_the_checker_finds_a_kernel_that_was_tricked():
    """Python cannot stop a forger inside the process; the log does."""
    forged = kernel.conclude("ground", eq(real(0), 1), (), (eq(real(0), 1),))
    with pytest.raises(ProofError, match="does not follow"):
        check.check(log.write({"false": forged}))
    made_up = kernel.conclude("nonsense", eq(real(0), 1))
    with pytest.raises(ProofError, match="no rule"):
        check.check(log.write({"false": made_up}))


def test_the_checker_captures_nothing():
    """Its own step variables stay apart from the free variables of φ."""
    h = var("_", REAL)
    every = recursive(
        "log.every",
        [x, xs],
        (x < x).sort,
        lambda x: eq(x, x),
        lambda h, t, rec, x: conj(eq(h, x), rec(x)),
    )
    t = var("__", list_of(REAL))
    weak = forall([h, t], implies(every(h, t), every(h, cons(h, t))))
    step_ = auto.auto(weak, defs=[every])
    base = auto.auto(every(h, nil(REAL)), defs=[every])
    phi = every(h, xs)
    forged = kernel.conclude("induct_list", forall([xs], phi), (base, step_), (xs, phi))
    with pytest.raises(ProofError, match="base or step"):
        check.check(log.write({"false": kernel.generalize([h], forged)}))
