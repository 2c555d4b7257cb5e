"""Speculative decoding of a whole drafted block: the target's law, at any length.

A context is whatever the models condition on; `extend` appends a token to it.
"""

from collections.abc import Callable, Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    auto,
    close,
    exact,
    lemma,
    list_induction,
    restate,
    suppose,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL, fun, list_of
from k3.logic.syntax import (
    conj,
    cons,
    eq,
    forall,
    implies,
    ite,
    lam,
    nil,
    real,
    var,
)
from k3.logic.terms import Symbol, Term
from k3.proof.sums import every
from k3.proof.theorem import Theorem, Theorems
from k3.proof.verified import (
    AT,
    CONTEXT,
    CORRECTION,
    KEEP,
    MODELS,
    REJECTED,
    both_are_laws,
    c,
    is_token,
    p,
    prove_step,
    q,
    words,
    x,
)

drafted, xs = var("drafted", INT), var("xs", list_of(INT))
extend = var("extend", fun(CONTEXT, INT, CONTEXT))

TARGET = recursive(  # the chance of the tokens when the target samples one by one
    "target_law",
    [p, extend, c, xs],
    REAL,
    lambda p, extend, c: real(1),
    lambda h, t, rec, p, extend, c: p(c, h) * rec(p, extend, extend(c, h)),
)


def _law(name: str, resumed: Callable[..., Term], stale: bool = False) -> Symbol:
    """The law of verified blocks; `resumed` samples after a replaced token."""

    def verified(h: Term, t: Term, rec: Callable[..., Term], *given: Term) -> Term:
        words, p, q, extend, drafted, c = given
        after = extend(c, h)
        kept = q(c, h) * KEEP(p(c, h), q(c, h))
        replaced = REJECTED(words, p, q, c) * CORRECTION(words, p, q, c, h)
        rest = rec(words, p, q, extend, drafted - 1, c if stale else after)
        block = kept * rest + replaced * resumed(p, q, extend, after, t)
        return ite(drafted <= 0, p(c, h) * TARGET(p, extend, after, t), block)

    given = [*MODELS, extend, drafted, c, xs]
    return recursive(name, given, REAL, lambda *_: real(1), verified)


# the chance of the tokens when `drafted` of them are drafted and verified: a kept one
# goes on in the block, a replaced one ends it, and after a block the target samples
BLOCK = _law("block_law", lambda p, q, *rest: TARGET(p, *rest))


def _block(block: Term) -> Term:
    tokens = every(INT)(lam([x], is_token(x)), xs)
    target = TARGET(p, extend, c, xs)
    given = conj(words >= 0, both_are_laws(), tokens)
    return forall([*MODELS, extend, drafted, c, xs], implies(given, eq(block, target)))


def block_is_lossless() -> Term:
    """However many tokens are drafted and verified in a block, every sequence of tokens
    has the chance that it has when the target samples them one by one.
    """
    return _block(BLOCK(*MODELS, extend, drafted, c, xs))


@lemma
def _prove_block() -> Thm:
    (dim,) = suppose(words >= 0)
    (models,) = suppose(both_are_laws())

    def goal(xs: Term) -> Term:
        tokens = every(INT)(lam([x], is_token(x)), xs)
        block = BLOCK(*MODELS, extend, drafted, c, xs)
        same = eq(block, TARGET(p, extend, c, xs))
        return forall([drafted, c], implies(tokens, same))

    def step(h: Term, t: Term, smaller: Thm) -> Thm:
        whole = cons(h, t)
        (tokens,) = suppose(every(INT)(lam([x], is_token(x)), whole))
        law = at_next(every(INT), h, t, lam([x], is_token(x)))
        both = kernel.eq_mp(law, tokens)
        first, others = kernel.conj_elim(both, 0), kernel.conj_elim(both, 1)
        after = extend(c, h)
        later = TARGET(p, extend, after, t)
        inner = kernel.mp(smaller(drafted - 1, after), others)
        one = use(prove_step()(*MODELS, c, h), dim, models, first)
        block = at_next(BLOCK, h, t, *MODELS, extend, drafted, c)
        target = at_next(TARGET, h, t, p, extend, c)
        kept = q(c, h) * KEEP(p(c, h), q(c, h))
        facts = [
            kernel.congr(kept * inner.concl.args[0], kernel.refl(kept), inner),
            kernel.congr(one.concl.args[0] * later, one, kernel.refl(later)),
        ]
        same = eq(block.concl.args[0], target.concl.args[0])
        return close([drafted, c], [tokens], exact(same, block, target, *facts))

    base = auto(goal(nil(INT)), defs=[BLOCK, TARGET])
    th = list_induction(xs, goal(xs), base, step)
    th = close([*MODELS, extend], [dim, models], th)
    return restate(block_is_lossless(), _joined(th))


def _joined(th: Thm) -> Thm:
    """The premises as one conjunction."""
    tokens = every(INT)(lam([x], is_token(x)), xs)
    (given,) = suppose(conj(words >= 0, both_are_laws(), tokens))
    th = use(th(*MODELS, extend), given)
    th = use(th(xs)(drafted, c), given)
    return close([*MODELS, extend, drafted, c, xs], [given], th)


def _mutants() -> Mapping[str, Term]:
    given = [*MODELS, extend, drafted, c, xs]
    drafts = _law("block_law_drafted", lambda p, q, *rest: TARGET(q, *rest))
    stale = _law("block_law_stale", lambda p, q, *rest: TARGET(p, *rest), stale=True)
    swapped = BLOCK(words, q, p, extend, drafted, c, xs)
    return {
        "draft and target exchanged": _block(swapped),
        "the draft goes on after a rejection": _block(drafts(*given)),
        "the context of a kept token forgotten": _block(stale(*given)),
    }


BLOCK_AT = {**AT, "c": "Context0", "drafted": 2, "xs": (1, 0)}
THEOREMS: Theorems = {
    "block_is_lossless": Theorem(
        statement=block_is_lossless,
        proof=_prove_block,
        scope="all block lengths, sequences, vocabularies and real laws",
        mutants=_mutants,
        hints=dict.fromkeys(
            (
                "draft and target exchanged",
                "the draft goes on after a rejection",
                "the context of a kept token forgotten",
            ),
            BLOCK_AT,
        ),
    ),
}
