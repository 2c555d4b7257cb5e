"""Every way of changing a proof log that we could think of is noticed."""

import json

import pytest

from k3.errors import ProofError
from k3.logic import check


def step(lines, rule, which=0):
    return [line for line in lines if line.get("rule") == rule][which]


def term(lines, op, data=None):
    return next(
        line
        for line in lines
        if line.get("op") == op and (data is None or line.get("data") == data)
    )


def number(lines, op):
    return term(lines, op)["term"]


def other_term(lines, sort_like):
    """Another statement that appears somewhere."""
    return next(
        line["concl"]
        for line in lines
        if "rule" in line and line["concl"] != sort_like and not line["hyps"]
    )


def swap_conclusion(lines):
    s = step(lines, "certificate")
    s["concl"] = other_term(lines, s["concl"])


def drop_hypothesis(lines):
    next(line for line in lines if line.get("rule") == "assume")["hyps"] = []


def add_hypothesis(lines):
    s = step(lines, "refl")
    s["hyps"] = [other_term(lines, -1)]


def forget_hypothesis_later(lines):
    s = next(
        line for line in lines if line.get("rule") == "certificate" and line["hyps"]
    )
    s["hyps"] = []


def drop_axiom(lines):
    s = next(
        line for line in lines if line.get("rule") == "instantiate" and line["axioms"]
    )
    s["axioms"] = []


def rename_axiom(lines):
    step(lines, "axiom")["data"][0] = "harmless"


def change_rule(lines):
    step(lines, "discharge")["rule"] = "assume"


def unknown_rule(lines):
    step(lines, "trans")["rule"] = "trust_me"


def other_premise(lines):
    s = step(lines, "trans")
    s["from"] = s["from"][::-1]


def later_premise(lines):
    s = step(lines, "discharge")
    s["from"] = [s["step"] + 1]


def negative_premise(lines):
    step(lines, "discharge")["from"] = [-1]


def certificate_weight(lines):
    s = next(
        line
        for line in lines
        if line.get("rule") == "certificate" and line["data"][1][0][1][0]
    )
    entry = s["data"][1][0][1][0][0]
    entry[1] = str(-7 if entry[1] != "-7" else 3)


def certificate_dropped(lines):
    for line in lines:
        if line.get("rule") == "certificate":
            line["data"][1] = []


def certificate_for_less(lines):
    s = step(lines, "certificate", -1)
    s["data"][1] = [[c, [[]] * len(b)] for c, b in s["data"][1]]


def wrong_literal(lines):
    term(lines, "lit")["data"] = "17"


def operation_exchanged(lines):
    term(lines, "+")["op"] = "-"


def arguments_exchanged(lines):
    for line in lines:
        if line.get("op") == "<=":
            line["args"] = line["args"][::-1]


def sort_changed(lines):
    term(lines, "free")["sort"] = ["Bool"]


def binder_sort_changed(lines):
    term(lines, "forall")["data"] = [["Int"]]


def definition_circular(lines):
    s = step(lines, "define")
    call = next(line for line in lines if (line.get("data") or [0])[0] == "log.twice")
    s["data"][2] = call["term"]


def definition_changed(lines):
    step(lines, "define")["data"][2] = step(lines, "define")["data"][1][0]


def recursion_not_smaller(lines):
    s = step(lines, "define_recursive")
    s["data"][2] = 1 if len(s["data"][1]) > 1 else 7


def recursion_other_law(lines):
    step(lines, "define_recursive")["data"][5] = 1


def base_of_induction_skipped(lines):
    s = step(lines, "induct_list")
    s["from"] = [s["from"][1], s["from"][1]]


def step_of_induction_skipped(lines):
    s = step(lines, "induct_nat")
    s["from"] = [s["from"][0], s["from"][0]]


def conjunct_out_of_range(lines):
    step(lines, "conj_elim")["data"] = [2]


def instance_of_another_value(lines):
    s = step(lines, "instantiate")
    s["data"] = [number(lines, "lit")] * len(s["data"])


def generalized_hypothesis(lines):
    s = step(lines, "generalize")
    s["from"] = [step(lines, "assume")["step"]]


def ground_goal_changed(lines):
    s = step(lines, "ground")
    s["data"] = [other_term(lines, s["concl"])]
    s["from"] = []
    s["concl"] = s["data"][0]


def theorem_with_hypotheses(lines):
    lines[-1]["step"] = step(lines, "assume")["step"]


def theorem_twice(lines):
    lines.append(dict(lines[-1]))


def step_removed(lines):
    lines.remove(step(lines, "refl"))


def number_written_twice(lines):
    lines.insert(0, dict(term(lines, "free")))


def line_of_no_kind(lines):
    lines.insert(0, {"believe": True})


def symbol_twice(lines):
    declared = next(line for line in lines if "declare" in line)
    lines.insert(lines.index(declared) + 1, dict(declared))


TAMPERED = [
    swap_conclusion,
    drop_hypothesis,
    add_hypothesis,
    forget_hypothesis_later,
    drop_axiom,
    rename_axiom,
    change_rule,
    unknown_rule,
    other_premise,
    later_premise,
    negative_premise,
    certificate_weight,
    certificate_dropped,
    certificate_for_less,
    wrong_literal,
    operation_exchanged,
    arguments_exchanged,
    sort_changed,
    binder_sort_changed,
    definition_circular,
    definition_changed,
    recursion_not_smaller,
    recursion_other_law,
    base_of_induction_skipped,
    step_of_induction_skipped,
    conjunct_out_of_range,
    instance_of_another_value,
    generalized_hypothesis,
    ground_goal_changed,
    theorem_with_hypotheses,
    theorem_twice,
    step_removed,
    number_written_twice,
    line_of_no_kind,
    symbol_twice,
]


@pytest.mark.parametrize("tamper", TAMPERED, ids=lambda f: f.__name__)
def test_a_tampered_log_is_rejected(lines, tamper):
    changed = json.loads(json.dumps(lines))
    tamper(changed)
    assert changed != lines
    with pytest.raises(ProofError, match="the proof log is rejected"):
        check.check([json.dumps(line) for line in changed])
