"""Ground instances of lemmas and definitions that speak of a goal. Untrusted."""

from collections.abc import Sequence

from k3.logic import constants
from k3.logic.kernel import Thm
from k3.logic.match import Pattern, pieces, subterms
from k3.logic.terms import BINDERS, Symbol, Term, make

ROUNDS = 4
MOST_FACTS = 400
DEPTH = 60


def saturate(
    goal: Term,
    by: Sequence[Thm],
    defs: Sequence[Symbol] = (),
    rounds: int = ROUNDS,
) -> list[Thm]:
    """Ground instances of lemmas and definitions that speak of the goal."""
    out: dict[Term, Thm] = {}
    patterns: list[Pattern] = []
    for d in defs:
        for law in constants.laws(d):
            _sort_in(law, True, patterns, out)
    for th in by:
        _sort_in(th, False, patterns, out)
    for _ in range(rounds):
        candidates = _candidates(goal, list(out.values()))
        size = len(out)
        for p in patterns:
            for th in p.instances(candidates):
                out.setdefault(th.concl, th)
                if len(out) > MOST_FACTS:
                    return list(out.values())
        if len(out) == size:
            break
    return list(out.values())


def _sort_in(
    th: Thm, definition: bool, patterns: list[Pattern], out: dict[Term, Thm]
) -> None:
    for p in pieces(th):
        if p.concl.op == "forall":
            patterns.append(Pattern(p, definition=definition))
        else:
            out.setdefault(p.concl, p)


def _candidates(goal: Term, facts: list[Thm]) -> list[Term]:
    """Subterms, also after rewriting by known ground equations and in ite branches."""
    ts = [goal, *(th.concl for th in facts)]
    rules: dict[Term, Term] = {}
    for th in facts:
        c = th.concl.args[1] if th.concl.op == "=>" else th.concl
        if c.op == "=" and c.args[0].op in ("const", "call"):
            rules.setdefault(*c.args)
    memo: dict[Term, Term] = {}
    ts += [_simple(t, rules, memo, 0) for t in ts]
    branches = [b for t in subterms(ts) for b in _branches(t)]
    ts += [_simple(b, rules, memo, 0) for b in branches]
    return [t for t in subterms(ts) if t.op in ("const", "call", "*")]


def _simple(t: Term, rules: dict[Term, Term], memo: dict[Term, Term], k: int) -> Term:
    if t not in memo and k < DEPTH:
        memo[t] = t
        new = t
        if t.args and t.op not in BINDERS:
            inner = [_simple(a, rules, memo, k + 1) for a in t.args]
            new = make(t.op, inner, t.data)
        if rules.get(new, new) is not new:
            new = _simple(rules[new], rules, memo, k + 1)
        memo[t] = new
    return memo.get(t, t)


def _branches(t: Term) -> list[Term]:
    out = []
    for i, a in enumerate(t.args):
        if t.op == "const" and a.op == "ite":
            for b in a.args[1:]:
                out.append(make("const", (*t.args[:i], b, *t.args[i + 1 :]), t.data))
    return out
