"""Context parallelism: updates are affine maps, segments compose into one."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import by_induction, close, exact, lemma, restate, suppose, use
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL, fun, list_of, named
from k3.logic.syntax import eq, forall, implies, lam, var
from k3.logic.terms import Term
from k3.proof.lists import append
from k3.proof.sums import SUM, sigma, sum_add, sum_scale, sum_swap
from k3.proof.theorem import Theorem, Theorems

SUMMARY, STATE, TOKEN = map(named, ("Summary", "State", "Token"))
act = var("act", fun(SUMMARY, STATE, STATE))
after = var("after", fun(SUMMARY, SUMMARY, SUMMARY))  # first argument runs first
nothing = var("nothing", SUMMARY)
summary = var("summary", fun(TOKEN, SUMMARY))
update = var("update", fun(STATE, TOKEN, STATE))
s, x = var("s", STATE), var("x", TOKEN)
p, q, r = (var(v, SUMMARY) for v in "pqr")
xs, ys = var("xs", list_of(TOKEN)), var("ys", list_of(TOKEN))

FOLD = recursive(
    "fold",
    [update, s, xs],
    STATE,
    lambda update, s: s,
    lambda h, t, rec, update, s: rec(update, update(s, h)),
)
SEGMENT = recursive(
    "segment",
    [after, nothing, summary, xs],
    SUMMARY,
    lambda after, nothing, summary: nothing,
    lambda h, t, rec, after, nothing, summary: after(
        summary(h), rec(after, nothing, summary)
    ),
)


def _laws() -> list[Term]:
    return [
        forall([s, x], eq(act(summary(x), s), update(s, x))),
        forall([p, q, s], eq(act(after(p, q), s), act(q, act(p, s)))),
        forall([s], eq(act(nothing, s), s)),
    ]


EVERY = [act, after, nothing, summary, update]


def segment_acts_as_fold() -> Term:
    """If each update is the action of its summary and summaries compose, the updates
    of any segment are the action of one summary.
    """
    goal = eq(FOLD(update, s, xs), act(SEGMENT(after, nothing, summary, xs), s))
    return forall([*EVERY, s, xs], implies(*_laws(), goal))


@lemma
def _prove_segment() -> Thm:
    hyps = suppose(*_laws())
    goal = eq(FOLD(update, s, xs), act(SEGMENT(after, nothing, summary, xs), s))
    th = by_induction(xs, forall([s], goal), by=hyps, defs=[FOLD, SEGMENT])
    return restate(segment_acts_as_fold(), close(EVERY, hyps, th))


def _joined(first: Term, second: Term) -> Term:
    whole = SEGMENT(after, nothing, summary, append(TOKEN)(xs, ys))
    monoid = [
        forall([p], eq(after(nothing, p), p)),
        forall([p, q, r], eq(after(after(p, q), r), after(p, after(q, r)))),
    ]
    goal = eq(whole, after(first, second))
    return forall([after, nothing, summary, xs, ys], implies(*monoid, goal))


def ranks_compose() -> Term:
    """The summary of xs ++ ys is that of xs followed by that of ys: ranks may
    summarize their segments apart.
    """
    parts = [SEGMENT(after, nothing, summary, v) for v in (xs, ys)]
    return _joined(*parts)


@lemma
def _prove_ranks() -> Thm:
    monoid = suppose(
        forall([p], eq(after(nothing, p), p)),
        forall([p, q, r], eq(after(after(p, q), r), after(p, after(q, r)))),
    )
    whole = SEGMENT(after, nothing, summary, append(TOKEN)(xs, ys))
    parts = [SEGMENT(after, nothing, summary, v) for v in (xs, ys)]
    goal = forall([ys], eq(whole, after(*parts)))
    th = by_induction(xs, goal, by=monoid, defs=[SEGMENT, append(TOKEN)])
    th = close([after, nothing, summary], monoid, th)
    return restate(ranks_compose(), th)


n, i, j, m = (var(v, INT) for v in ("n", "i", "j", "m"))
MATRIX, VECTOR = fun(INT, INT, REAL), fun(INT, REAL)
A, B = var("A", MATRIX), var("B", MATRIX)
a, b, v = (var(name, VECTOR) for name in ("a", "b", "v"))


def _apply(A: Term, a: Term, v: Term, i: Term) -> Term:
    """Row i of a + A v."""
    return a(i) + sigma(n, A(i, j) * v(j), j)


def _composed(offset: Term) -> Term:
    """B after A: the matrix B A and the offset b + B a, against applying in turn."""
    product = lam([i, j], sigma(n, B(i, m) * A(m, j), m))
    both = _apply(product, lam([i], offset), v, i)
    inner = lam([i], _apply(A, a, v, i))
    in_turn = _apply(B, b, inner, i)
    return forall([n, A, B, a, b, v, i], implies(n >= 0, eq(both, in_turn)))


def affine_maps_compose() -> Term:
    """Applying s ↦ a + A s, then s ↦ b + B s, is s ↦ (b + B a) + (B A) s."""
    return _composed(b(i) + sigma(n, B(i, m) * a(m), m))


@lemma
def _prove_affine() -> Thm:
    hyps = suppose(n >= 0)
    row = lam([m], sigma(n, A(m, j) * v(j), j))
    terms = lam([m, j], B(i, m) * (A(m, j) * v(j)))
    # Σ_m B(a + A v) = Σ_m B a + Σ_m B Σ_j A v
    each = kernel.ring(B(i, m) * (a(m) + row(m)), B(i, m) * a(m) + B(i, m) * row(m))
    whole = SUM(lam([m], B(i, m) * (a(m) + row(m))), n)
    split = kernel.congr(whole, kernel.abstract([m], each), kernel.refl(n))
    parts = [lam([m], B(i, m) * a(m)), lam([m], B(i, m) * row(m))]
    added = use(sum_add()(n, *parts), *hyps)
    pull = use(sum_scale()(n, B(i, m), lam([j], A(m, j) * v(j))), *hyps)
    inside = SUM(parts[1], n)
    pulled = kernel.congr(
        inside, kernel.abstract([m], kernel.sym(pull)), kernel.refl(n)
    )
    order = use(sum_swap()(n, n, terms), *hyps)
    # Σ_j Σ_m B (A v) = Σ_j (Σ_m B A) v
    inner = lam([m], B(i, m) * A(m, j))
    factor = use(sum_scale()(n, v(j), inner), *hyps)
    left = kernel.abstract(
        [m], kernel.ring(B(i, m) * (A(m, j) * v(j)), v(j) * (B(i, m) * A(m, j)))
    )
    left = kernel.congr(
        SUM(lam([m], B(i, m) * (A(m, j) * v(j))), n), left, kernel.refl(n)
    )
    right = kernel.ring(v(j) * SUM(inner, n), SUM(inner, n) * v(j))
    column = kernel.trans(kernel.trans(left, factor), right)
    outer = SUM(lam([j], SUM(lam([m], B(i, m) * (A(m, j) * v(j))), n)), n)
    columns = kernel.congr(outer, kernel.abstract([j], column), kernel.refl(n))
    goal = affine_maps_compose()
    product = lam([i, j], sigma(n, B(i, m) * A(m, j), m))
    both = _apply(product, lam([i], b(i) + sigma(n, B(i, m) * a(m), m)), v, i)
    in_turn = _apply(B, b, lam([i], _apply(A, a, v, i)), i)
    th = exact(eq(both, in_turn), split, added, pulled, order, columns)
    return restate(goal, close([n, A, B, a, b, v, i], hyps, th))


def _affine_mutants() -> Mapping[str, Term]:
    return {
        "the first offset unmoved": _composed(b(i) + a(i)),
        "the second offset moved": _composed(a(i) + sigma(n, A(i, m) * b(m), m)),
    }


def _fold_mutants() -> Mapping[str, Term]:
    """Wrong variants of segment_acts_as_fold."""
    goal = eq(FOLD(update, s, xs), act(SEGMENT(after, nothing, summary, xs), s))
    acts, _, unit = _laws()
    backwards = forall([p, q, s], eq(act(after(p, q), s), act(p, act(q, s))))
    return {
        "the later summary acts first": forall(
            [*EVERY, s, xs], implies(acts, backwards, unit, goal)
        ),
        "summaries that do not compose": forall([*EVERY, s, xs], implies(acts, goal)),
    }


def _rank_mutants() -> Mapping[str, Term]:
    """Wrong variants of ranks_compose."""
    first, second = (SEGMENT(after, nothing, summary, v) for v in (xs, ys))
    return {
        "the later segment first": _joined(second, first),
        "the first segment alone": _joined(first, nothing),
    }


def _constants(*, last: bool) -> dict[str, object]:
    """Summary 0 does nothing, 1 and 2 set the state; of two the last or first stays."""

    def act(p: str, s: str) -> str:
        return s if p == "Summary0" else f"State{p[-1]}"

    def after(p: str, q: str) -> str:
        first, second = (q, p) if last else (p, q)
        return second if first == "Summary0" else first

    return {
        "act": act,
        "after": after,
        "nothing": "Summary0",
        "summary": lambda x: f"Summary{x[-1]}",
        "update": lambda s, x: act(f"Summary{x[-1]}", s),
        "xs": ("Token1",),
        "ys": ("Token2",),
    }


THEOREMS: Theorems = {
    "segment_acts_as_fold": Theorem(
        statement=segment_acts_as_fold,
        proof=_prove_segment,
        scope="all state, token and summary types, all segment lengths",
        mutants=_fold_mutants,
        hints={
            "the later summary acts first": {
                **_constants(last=False),
                "xs": ("Token1", "Token2"),
            },
            "summaries that do not compose": {
                "act": _constants(last=True)["act"],
                "summary": _constants(last=True)["summary"],
                "update": _constants(last=True)["update"],
            },
        },
    ),
    "ranks_compose": Theorem(
        statement=ranks_compose,
        proof=_prove_ranks,
        scope="all summaries that form a monoid, all segment lengths",
        mutants=_rank_mutants,
        hints=dict.fromkeys(_rank_mutants(), _constants(last=True)),
    ),
    "affine_maps_compose": Theorem(
        statement=affine_maps_compose,
        proof=_prove_affine,
        scope="all state widths, all real matrices and offsets",
        mutants=_affine_mutants,
    ),
}
