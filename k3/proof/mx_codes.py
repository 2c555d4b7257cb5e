"""Microscaling: the code tables of E2M1 and E8M0 (OCP MX, §5.3.3 and §5.4.1)."""

from collections.abc import Mapping
from fractions import Fraction

from k3.logic import kernel
from k3.logic.auto import by_induction, close, lemma, restate, suppose, unfold
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, REAL
from k3.logic.syntax import conj, eq, forall, implies, integer, ite, real, var
from k3.logic.terms import Term
from k3.proof.mx import MAGNITUDES
from k3.proof.theorem import Theorem, Theorems

code = var("code", INT)


def _magnitude(code: Term) -> Term:
    out = real(MAGNITUDES[-1])
    for k in reversed(range(7)):
        out = ite(eq(code, k), real(MAGNITUDES[k]), out)
    return out


# codes 0 to 7 are the magnitudes, 8 to 15 the same with a minus; both zeros are 0
DECODED = define(
    "e2m1_value",
    [code],
    ite(code < 8, _magnitude(code), -_magnitude(code - 8)),
)
# the sign bit flipped: (code + 8) mod 16
NEGATED = define(
    "e2m1_negated", [code], ite(code < 8, code + integer(8), code - integer(8))
)
# 2^(code - 127)
SCALE = recursive(
    "e8m0_value",
    [code],
    REAL,
    lambda: real(Fraction(1, 2**127)),
    lambda n, rec: rec() * 2,
)
CODES = conj(code >= 0, code < 16)


def _negation(given: Term, then: Term) -> Term:
    return forall([code], implies(given, then))


def _flipped() -> list[Term]:
    other = NEGATED(code)
    back, value = eq(NEGATED(other), code), eq(DECODED(other), -DECODED(code))
    return [other >= 0, other < 16, value, back]


def negated_code_is_negated_value() -> Term:
    """Flipping the sign bit of an E2M1 code gives a code, whose value is the negative,
    and flipping it again gives the code back.
    """
    return _negation(CODES, conj(*_flipped()))


@lemma
def _prove_negation() -> Thm:
    hyps = suppose(CODES)
    other = NEGATED(code)
    laws = [
        unfold(DECODED, code),
        unfold(DECODED, other),
        unfold(NEGATED, code),
        unfold(NEGATED, other),
    ]
    ths = [kernel.ground(goal, [*hyps, *laws]) for goal in _flipped()]
    return close([code], hyps, kernel.conj_intro(*ths))


def scale_is_positive() -> Term:
    """Every E8M0 code is a positive scale, 2^−127 at the least."""
    least = real(Fraction(1, 2**127))
    return _negation(code >= 0, conj(SCALE(code) > 0, SCALE(code) >= least))


@lemma
def _prove_scale() -> Thm:
    least = real(Fraction(1, 2**127))
    goal = conj(SCALE(code) > 0, SCALE(code) >= least)
    return restate(scale_is_positive(), by_induction(code, goal, defs=[SCALE]))


def _negation_mutants() -> Mapping[str, Term]:
    """Wrong variants of negated_code_is_negated_value."""
    other = NEGATED(code)
    return {
        "the value is kept": _negation(CODES, eq(DECODED(other), DECODED(code))),
        "the code counted from the end": _negation(
            CODES, eq(DECODED(integer(15) - code), -DECODED(code))
        ),
        "both zeros are one code": _negation(
            conj(CODES, eq(DECODED(code), 0)), eq(other, code)
        ),
    }


def _scale_mutants() -> Mapping[str, Term]:
    """Wrong variants of scale_is_positive."""
    return {
        "at least one": _negation(code >= 0, SCALE(code) >= 1),
        "a step is a factor of four": _negation(
            code >= 0, SCALE(code + 1) >= SCALE(code) * 4
        ),
    }


THEOREMS: Theorems = {
    "negated_code_is_negated_value": Theorem(
        statement=negated_code_is_negated_value,
        proof=_prove_negation,
        scope="all 16 codes",
        mutants=_negation_mutants,
    ),
    "scale_is_positive": Theorem(
        statement=scale_is_positive,
        proof=_prove_scale,
        scope="all codes, the 255 of the format among them",
        mutants=_scale_mutants,
    ),
}
