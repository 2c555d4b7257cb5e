"""KDA by chunks: the WY form of Eq. 4 is the recurrence of Eq. 1, for any length.

One value column of the memory; keys and retentions are functions of token and channel.
The spec divides cumulative retentions, here γ is the product over the tokens between,
so that retentions may be zero; `decay.is_quotient` joins the two.
"""

from collections.abc import Callable, Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_next,
    at_zero,
    close,
    exact,
    have,
    lemma,
    nat_induction,
    suppose,
    use,
)
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import INT
from k3.logic.syntax import conj, eq, forall, implies, integer, lam, var
from k3.logic.terms import Term
from k3.proof.decay import DECAY
from k3.proof.substitution import (
    MATRIX,
    SOLVE,
    VECTOR,
    agree,
    at,
    dot,
    prove_split,
    prove_stay,
    times,
    under,
)
from k3.proof.sums import SUM, sigma, sum_scale
from k3.proof.theorem import Theorem, Theorems

n, t, i, j, m, r, size = (var(v, INT) for v in ("n", "t", "i", "j", "m", "r", "size"))
alpha, k = var("alpha", MATRIX), var("k", MATRIX)
beta, v, s, q, rate = (var(name, VECTOR) for name in ("beta", "v", "s", "q", "rate"))
ZERO = integer(0)


def _updated(t: Term, rec: Callable[..., Term], *given: Term) -> Term:
    n, alpha, k, beta, v, _ = given
    S = rec(*given)
    read = sigma(n, k(t, i) * (alpha(t, i) * S(i)), i)
    return lam([m], alpha(t, m) * S(m) + k(t, m) * (beta(t) * (v(t) - read)))


STATE = recursive(  # Eq. 1 over the first t tokens
    "kda_state",
    [n, alpha, k, beta, v, s, t],
    VECTOR,
    lambda *given: given[-1],
    _updated,
)


def gamma(m: Term, j: Term, t: Term) -> Term:
    """γ of a channel over the tokens j .. t − 1."""
    return DECAY(lam([r], alpha(r, m)), j, t)


def old(w: Term, t: Term) -> Term:
    """(w ⊙ Γ_t) · S."""
    return sigma(n, gamma(i, ZERO, t + 1) * w(i) * s(i), i)


def score(w: Term, t: Term, j: Term) -> Term:
    """Entry t, j of (W ⊙ Γ)(K / Γ)ᵀ, w row t of W."""
    return sigma(n, w(i) * (gamma(i, j + 1, t + 1) * k(j, i)), i)


def _key(t: Term) -> Term:
    return lam([i], k(t, i))


SCORES = lam([t, j], score(_key(t), t, j))
DECAYED = lam([t, i], gamma(i, ZERO, t + 1) * k(t, i))  # Γ ⊙ K
Value = Callable[[Term], Term]


def wy_value(size: Term) -> Value:
    """The rows of Ṽ = U − W S."""

    def row(j: Term) -> Term:
        column = SOLVE(beta, SCORES, lam([t], DECAYED(t, i)), size)(j)
        return SOLVE(beta, SCORES, v, size)(j) - sigma(n, column * s(i), i)

    return row


def _at_once(size: Term) -> Value:
    """The same rows by one substitution, for v − (Γ ⊙ K) S."""
    right = lam([t], v(t) - sigma(n, DECAYED(t, i) * s(i), i))
    return SOLVE(beta, SCORES, right, size)


def _written(size: Term, m: Term, value: Value) -> Term:
    """Γ ⊙ S + (K ⊙ Γ_C / Γ)ᵀ Ṽ, at row m."""
    each = gamma(m, j + 1, size) * k(j, m) * value(j)
    return gamma(m, ZERO, size) * s(m) + sigma(size, each, j)


def _read(t: Term, value: Value) -> Term:
    """(Γ ⊙ Q) S + Tril[(Q ⊙ Γ)(K / Γ)ᵀ] Ṽ, at row t."""
    return old(q, t) + sigma(t + 1, score(q, t, j) * value(j), j)


def _state(size: Term) -> Term:
    return STATE(n, alpha, k, beta, v, s, size)


EVERY = [n, alpha, k, beta, v, s, q, size, t, m]
INSIDE = conj(n >= 0, t >= 0, t < size)


def _chunk(state: Term, out: Term) -> Term:
    answer = sigma(n, q(i) * _state(t + 1)(i), i)
    same = conj(eq(_state(size)(m), state), eq(answer, out))
    return forall(EVERY, implies(INSIDE, same))


def chunk_equals_recurrence() -> Term:
    """Eq. 4 is Eq. 1: with U and W by forward substitution and Ṽ = U − W S, the memory
    after a chunk is Γ_C ⊙ S + (K ⊙ Γ_C / Γ)ᵀ Ṽ, and token t of it reads
    (Γ ⊙ Q) S + Tril[(Q ⊙ Γ)(K / Γ)ᵀ] Ṽ.
    """
    value = wy_value(size)
    return _chunk(_written(size, m, value), _read(t, value))


def _gains(natural: Thm, m: Term, j: Term, inside: Thm) -> Thm:
    """γ over j .. t is α_t times γ over j .. t − 1, where j ≤ t."""
    law = use(at_next(DECAY, t, lam([r], alpha(r, m)), j), natural)
    goal = eq(gamma(m, j, t + 1), gamma(m, j, t) * alpha(t, m))
    return kernel.ground(goal, [law, inside])


@lemma
def _decayed() -> Thm:
    """α_t ⊙ what is written after t tokens, as γ over one more token."""
    (natural,) = suppose(t >= 0)
    value = _at_once(t)
    each = lam([j], gamma(m, j + 1, t) * k(j, m) * value(j))
    pulled = use(sum_scale()(t, alpha(t, m), each), natural)
    (inside,) = suppose(conj(j >= 0, j < t))
    gain = _gains(natural, m, j + 1, have(j + 1 <= t, inside))
    more = gamma(m, j + 1, t + 1) * k(j, m) * value(j)
    scaled = times(k(j, m) * value(j), gain)
    same = agree(j, t, natural, inside, exact(eq(alpha(t, m) * each(j), more), scaled))
    first = times(s(m), _gains(natural, m, ZERO, natural))
    whole = gamma(m, ZERO, t + 1) * s(m) + sigma(t, more, j)
    goal = eq(alpha(t, m) * _written(t, m, value), whole)
    return close([t, m], [natural], exact(goal, pulled, same, first))


def _combined(w: Term, t: Term, size: Term, value: Value, *natural: Thm) -> Thm:
    """w against Γ_t ⊙ S + Σ_j γ k Ṽ is its old part plus its scores times Ṽ."""
    decayed, table = gamma(i, ZERO, t + 1) * s(i), gamma(i, j + 1, t + 1) * k(j, i)
    law = dot()(n, size, w, lam([i], decayed), lam([j, i], table), lam([j], value(j)))
    law = use(law, *natural)
    body = w(i) * decayed
    order = under(i, n, kernel.ring(body, gamma(i, ZERO, t + 1) * w(i) * s(i)))
    right = old(w, t) + sigma(size, score(w, t, j) * value(j), j)
    return exact(eq(law.concl.args[0], right), law, order)


def _grown(natural: Thm, dim: Thm, smaller: Thm) -> Thm:
    """The memory after token t."""
    value = _at_once(t)
    here = times(alpha(t, m), smaller(m))
    decayed = use(_decayed()(t, m), natural)
    before = kernel.trans(here, decayed)
    each = kernel.generalize([m], before)
    read = under(i, n, times(k(t, i), each(i)))
    scores = _combined(_key(t), t, t, value, dim, natural)
    law = at(use(at_next(STATE, t, n, alpha, k, beta, v, s), natural), m)
    given = value(j).args[0].args  # the parameters of the substitution
    found = use(at_next(SOLVE, t, *given[:3]), natural)
    new = at(found, t)
    new = kernel.ground(
        eq(new.concl.args[0], new.concl.args[1].args[1]), [new, kernel.refl(t)]
    )
    (inside,) = suppose(conj(j >= 0, j < t))
    kept = at(found, j)
    kept = kernel.ground(eq(kept.concl.args[0], value(j)), [kept, inside])
    factor = gamma(m, j + 1, t + 1) * k(j, m)
    later = _at_once(t + 1)
    same = agree(j, t, natural, inside, times(factor, kept))
    summed = use(at_next(SUM, t, lam([j], factor * later(j))), natural)
    one = use(at_next(DECAY, t, lam([r], alpha(r, m)), t + 1), natural)
    one = kernel.ground(eq(gamma(m, t + 1, t + 1), 1), [one])
    last = times(k(t, m) * later(t), one)
    write = times(k(t, m), new)
    inner = times(k(t, m) * beta(t), kernel.trans(read, scores))
    goal = eq(_state(t + 1)(m), _written(t + 1, m, later))
    return exact(goal, law, before, inner, same, summed, last, write)


@lemma
def _memory() -> Thm:
    """The memory after size tokens, in every channel."""
    (dim,) = suppose(n >= 0)

    def goal(size: Term) -> Term:
        return forall([m], eq(_state(size)(m), _written(size, m, _at_once(size))))

    def step(size: Term, natural: Thm, smaller: Thm) -> Thm:
        (t0,) = suppose(t >= 0)
        (before,) = suppose(goal(t))
        th = close([t], [t0, before], kernel.generalize([m], _grown(t0, dim, before)))
        return use(th(size), natural, smaller)

    start = at(at_zero(STATE, n, alpha, k, beta, v, s), m)
    one = times(s(m), at_zero(DECAY, lam([r], alpha(r, m)), ZERO))
    value = _at_once(ZERO)
    none = at_zero(SUM, lam([j], gamma(m, j + 1, ZERO) * k(j, m) * value(j)))
    first = eq(_state(ZERO)(m), _written(ZERO, m, value))
    base = kernel.generalize([m], exact(first, start, one, none))
    return kernel.discharge(dim.concl, nat_induction(size, goal(size), base, step))


@lemma
def _prove_chunk() -> Thm:
    (given,) = suppose(INSIDE)
    dim, natural, below = (kernel.conj_elim(given, part) for part in range(3))
    memory = kernel.mp(_memory(), dim)
    steps, sizes = exact(t + 1 >= 0, natural), exact(size >= 0, natural, below)
    # at token t
    after = use(memory(t + 1), steps)
    read = under(i, n, times(q(i), after(i)))
    value = _at_once(t + 1)
    answer = _combined(q, t, t + 1, value, dim, steps)
    (inside,) = suppose(conj(j >= 0, j < t + 1))
    params = value(j).args[0].args[:3]
    reach = have(t + 1 <= size, below)
    stay = use(prove_stay()(*params, t + 1, j, size), inside, reach)
    split = _split_at(dim, sizes)
    kept = kernel.trans(kernel.sym(stay), split(j))
    rows = agree(j, t + 1, steps, inside, times(score(q, t, j), kept))
    out = _read(t, wy_value(size))
    one = exact(eq(read.concl.args[0], out), read, answer, rows)
    # at the end
    last = use(memory(size), sizes)(m)
    factor = gamma(m, j + 1, size) * k(j, m)
    wy = under(j, size, times(factor, split(j)))
    state = _written(size, m, wy_value(size))
    end = exact(eq(_state(size)(m), state), last, wy)
    return close(EVERY, [given], kernel.conj_intro(end, one))


def _split_at(dim: Thm, natural: Thm) -> Thm:
    """Ṽ by one substitution is U − W S, at every row."""
    law = prove_split()(n, beta, SCORES, v, DECAYED, s, size, j)
    return kernel.generalize([j], use(law, dim, natural))


def _chunk_mutants() -> Mapping[str, Term]:
    value = wy_value(size)
    undecayed = gamma(m, ZERO, size) * s(m) + sigma(size, k(j, m) * value(j), j)
    raw = SOLVE(beta, SCORES, v, size)
    strict = old(q, t) + sigma(t, score(q, t, j) * value(j), j)
    return {
        "keys not decayed": _chunk(undecayed, _read(t, value)),
        "U in place of U − W S": _chunk(_written(size, m, raw), _read(t, raw)),
        "the token's own write not read": _chunk(_written(size, m, value), strict),
    }


ALL = "all chunk lengths, key widths, keys, values, queries, retentions and memories"
THEOREMS: Theorems = {
    "chunk_equals_recurrence": Theorem(
        statement=chunk_equals_recurrence,
        proof=_prove_chunk,
        scope=ALL + "; each value column",
        mutants=_chunk_mutants,
    ),
}
