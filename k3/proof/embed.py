"""Rows of a multimodal sequence: the table's for text, the images' at placeholders."""

from collections.abc import Callable, Mapping

from k3.logic import kernel
from k3.logic.auto import (
    at_zero,
    by_induction,
    lemma,
    restate,
)
from k3.logic.kernel import Thm
from k3.logic.match import opened
from k3.logic.recursion import recursive
from k3.logic.sorts import INT, fun, list_of, named
from k3.logic.syntax import (
    conj,
    cons,
    eq,
    forall,
    implies,
    integer,
    ite,
    nil,
    var,
)
from k3.logic.terms import Term
from k3.proof.lists import append, entry, length
from k3.proof.theorem import Theorem, Theorems

ROW = named("Row")
ids, i, k, placeholder, token = (
    var("ids", list_of(INT)),
    *(var(name, INT) for name in ("i", "k", "placeholder", "token")),
)
table, feature = var("table", fun(INT, ROW)), var("feature", fun(INT, ROW))
blank = var("blank", ROW)
IMAGES = recursive(
    "placeholders",
    [placeholder, ids],
    INT,
    lambda placeholder: integer(0),
    lambda h, t, rec, placeholder: (
        rec(placeholder) + ite(eq(h, placeholder), integer(1), integer(0))
    ),
)


def _row(h: Term, t: Term, rec: Callable[..., Term], *given: Term) -> Term:
    table, feature, placeholder, k = given
    image = cons(feature(k), rec(table, feature, placeholder, k + 1))
    text = cons(table(h), rec(table, feature, placeholder, k))
    return ite(eq(h, placeholder), image, text)


# the rows of ids, when k images have been seen before them
EMBED = recursive(
    "embed",
    [table, feature, placeholder, k, ids],
    list_of(ROW),
    lambda *_: nil(ROW),
    _row,
)
TAKE = recursive(
    "take[embed]",
    [i, ids],
    list_of(INT),
    lambda i: nil(INT),
    lambda h, t, rec, i: ite(i <= 0, nil(INT), cons(h, rec(i - 1))),
)
GIVEN = [table, feature, placeholder]
SIZE = length(INT)


def one_row_a_token() -> Term:
    """There is one row for each token, whatever is text and what is image."""
    rows = length(ROW)(EMBED(*GIVEN, k, ids))
    return forall([*GIVEN, k, ids], eq(rows, SIZE(ids)))


@lemma
def _prove_rows() -> Thm:
    goal = eq(length(ROW)(EMBED(*GIVEN, k, ids)), SIZE(ids))
    defs = [EMBED, length(ROW), SIZE]
    th = by_induction(ids, forall([*GIVEN, k], goal), defs=defs)
    return restate(one_row_a_token(), th)


def _at(start: Term) -> Term:
    here = entry(ROW)(blank, EMBED(*GIVEN, start, ids), i)
    own = entry(INT)(integer(0), ids, i)
    before = IMAGES(placeholder, TAKE(i, ids))
    inside = conj(i >= 0, i < SIZE(ids))
    text = implies(~eq(own, placeholder), eq(here, table(own)))
    image = implies(eq(own, placeholder), eq(here, feature(start + before)))
    return implies(inside, conj(text, image))


def text_and_image_rows() -> Term:
    """A text token has its row of the table; the placeholder that has n placeholders
    before it has row n of the images, in order.
    """
    return forall([*GIVEN, blank, ids, i], _at(integer(0)))


@lemma
def _prove_at() -> Thm:
    nothing = by_induction(ids, eq(TAKE(integer(0), ids), nil(INT)), defs=[TAKE])
    none = kernel.generalize([placeholder], at_zero(IMAGES, placeholder))
    defs = [EMBED, entry(ROW), entry(INT), IMAGES, TAKE, SIZE]
    goal = forall([*GIVEN, blank, k, i], _at(k))
    th = by_induction(ids, goal, by=[nothing, none], defs=defs)
    vs, phi = opened(text_and_image_rows())
    at = th(vs[4])(*vs[:4], 0, vs[5])
    return kernel.generalize(vs, kernel.ground(phi, [at]))


def joined_sequences() -> Term:
    """The rows of two texts joined are the rows of the first, then those of the second,
    whose images go on from where the first's ended.
    """
    more = var("more", list_of(INT))
    whole = EMBED(*GIVEN, k, append(INT)(ids, more))
    later = EMBED(*GIVEN, k + IMAGES(placeholder, ids), more)
    joined = append(ROW)(EMBED(*GIVEN, k, ids), later)
    return forall([*GIVEN, k, ids, more], eq(whole, joined))


@lemma
def _prove_joined() -> Thm:
    vs, goal = opened(joined_sequences())
    defs = [EMBED, append(INT), append(ROW), IMAGES]
    others = [v for v in vs if v is not vs[4]]
    th = by_induction(vs[4], forall(others, goal), defs=defs)
    return restate(joined_sequences(), th)


def _mutants() -> Mapping[str, Term]:
    """Wrong variants of text_and_image_rows."""
    here = entry(ROW)(blank, EMBED(*GIVEN, integer(0), ids), i)
    own = entry(INT)(integer(0), ids, i)
    inside = conj(i >= 0, i < SIZE(ids), eq(own, placeholder))
    every_ = [*GIVEN, blank, ids, i]
    return {
        "images by position": forall(every_, implies(inside, eq(here, feature(i)))),
        "the placeholder's own row": forall(
            every_, implies(inside, eq(here, table(own)))
        ),
    }


def _joined_mutants() -> Mapping[str, Term]:
    """Wrong variants of joined_sequences."""
    more = var("more", list_of(INT))
    whole = EMBED(*GIVEN, k, append(INT)(ids, more))
    again = append(ROW)(EMBED(*GIVEN, k, ids), EMBED(*GIVEN, k, more))
    return {
        "images start anew": forall([*GIVEN, k, ids, more], eq(whole, again)),
    }


ANY = "all tables, images, placeholders and sequences"


def _rows_mutants() -> Mapping[str, Term]:
    """Wrong variants of one_row_a_token."""
    rows = length(ROW)(EMBED(*GIVEN, k, ids))
    images = IMAGES(placeholder, ids)
    every = [*GIVEN, k, ids]
    return {
        "images alone": forall(every, eq(rows, images)),
        "a placeholder has no row": forall(every, eq(rows, SIZE(ids) - images)),
    }


THEOREMS: Theorems = {
    "one_row_a_token": Theorem(
        statement=one_row_a_token,
        proof=_prove_rows,
        scope=ANY,
        mutants=_rows_mutants,
    ),
    "text_and_image_rows": Theorem(
        statement=text_and_image_rows, proof=_prove_at, scope=ANY, mutants=_mutants
    ),
    "joined_sequences": Theorem(
        statement=joined_sequences,
        proof=_prove_joined,
        scope=ANY,
        mutants=_joined_mutants,
    ),
}
