"""The released sizes: depth sources, blocks of 32, cache ratios, well-formedness."""

from collections.abc import Mapping

from k3.logic import kernel
from k3.logic.auto import (
    close,
    exact,
    lemma,
    suppose,
    unfold,
    use,
)
from k3.logic.constants import define
from k3.logic.kernel import Thm
from k3.logic.sorts import INT
from k3.logic.syntax import (
    conj,
    eq,
    forall,
    implies,
    integer,
    ite,
    var,
)
from k3.logic.terms import Term
from k3.proof.config import (
    REST,
    WHOLE,
    a,
    b,
    block,
    divided,
    n,
    whole_and_rest,
)
from k3.proof.theorem import Theorem, Theorems

# what the last depth mix reads: the embedding, complete blocks, a partial block
SOURCES = define(
    "sources",
    [block, n],
    WHOLE(block, n) + 1 + ite(eq(REST(block, n), 0), integer(0), integer(1)),
)


def depth_sources() -> Term:
    """After a complete blocks and b more layers the depth mix reads 1 + a sources, and
    the partial block if b is not 0; for every block size.
    """
    given = conj(a >= 0, b >= 0, b < block)
    extra = ite(eq(b, 0), integer(0), integer(1))
    value = SOURCES(block, a * block + b)
    return forall([block, a, b], implies(given, eq(value, a + 1 + extra)))


@lemma
def _prove_sources() -> Thm:
    (h,) = suppose(conj(a >= 0, b >= 0, b < block))
    at = a * block + b
    parts = use(divided()(block, a, b), h)
    law = unfold(SOURCES, block, at)
    extra = ite(eq(b, 0), integer(0), integer(1))
    goal = eq(SOURCES(block, at), a + 1 + extra)
    whole, rest = (kernel.conj_elim(parts, i) for i in (0, 1))
    same = kernel.ground(eq(eq(REST(block, at), 0), eq(b, 0)), [rest])
    th = kernel.ground(goal, [law, whole, same])
    return close([block, a, b], [h], th)


def released_counts() -> Term:
    """93 = 4·23 + 1, so by `config.layer_counts` 24 layers are MLA and 69 KDA; and
    93 = 12·7 + 9, so by `depth_sources` the last depth mix reads 9 sources.
    """
    layers, mla = integer(93), integer(23) + 1
    return conj(
        eq(integer(23) * 4 + 1, layers),
        eq(mla, 24),
        eq(layers - mla, 69),
        eq(integer(7) * 12 + 9, layers),
        eq(integer(7) + 1 + 1, 9),
    )


@lemma
def _prove_released_counts() -> Thm:
    return kernel.conj_intro(*(exact(g) for g in released_counts().args))


def _sources_mutants() -> Mapping[str, Term]:
    """Wrong variants of depth_sources."""
    given = conj(a >= 0, b >= 0, b < block)
    value = SOURCES(block, a * block + b)
    extra = ite(eq(b, 0), integer(0), integer(1))
    return {
        "without the embedding": forall(
            [block, a, b], implies(given, eq(value, a + extra))
        ),
        "always a partial block": forall(
            [block, a, b], implies(given, eq(value, a + 2))
        ),
    }


def blocks_cover_width() -> Term:
    """The number of 32-wide blocks times 32 is the width exactly when 32 divides it."""
    blocks = WHOLE(integer(32), n)
    same = eq(eq(blocks * 32, n), eq(REST(integer(32), n), 0))
    return forall([n], implies(n >= 0, same))


@lemma
def _prove_blocks() -> Thm:
    (h,) = suppose(n >= 0)
    parts = use(whole_and_rest()(n, 32), h)
    blocks = WHOLE(integer(32), n)
    goal = eq(eq(blocks * 32, n), eq(REST(integer(32), n), 0))
    return close([n], [h], kernel.ground(goal, [parts]))


def _blocks_mutants() -> Mapping[str, Term]:
    covered = eq(WHOLE(integer(32), n) * 32, n)
    return {"every width": forall([n], implies(n >= 0, covered))}


latent, reserved, heads, nope, value = (
    var(v, INT) for v in ("latent", "reserved", "heads", "nope", "value")
)
ROW = define("mla_row_scalars", [latent, reserved], latent + reserved)
EXPANDED = define(
    "mla_expanded_scalars",
    [heads, nope, reserved, value],
    heads * (nope + reserved + value),
)
STATE = define("kda_state_scalars", [heads, nope, value], heads * nope * value)


def cache_ratio() -> Term:
    """A token costs 576 scalars in an MLA layer instead of 30,720: 3 for 160; and a KDA
    layer holds 1,572,864 scalars however long the text is.
    """
    row = ROW(integer(512), integer(64))
    full = EXPANDED(*(integer(x) for x in (96, 128, 64, 128)))
    state = STATE(*(integer(x) for x in (96, 128, 128)))
    return conj(
        eq(row, 576), eq(full, 30720), eq(full * 3, row * 160), eq(state, 1572864)
    )


@lemma
def _prove_ratio() -> Thm:
    laws = [
        unfold(ROW, 512, 64),
        unfold(EXPANDED, 96, 128, 64, 128),
        unfold(STATE, 96, 128, 128),
    ]
    return kernel.conj_intro(*(exact(g, *laws) for g in cache_ratio().args))


def _ratio_mutants() -> Mapping[str, Term]:
    row = ROW(integer(512), integer(64))
    full = EXPANDED(*(integer(x) for x in (96, 128, 64, 128)))
    return {"a ratio of 60": eq(full, row * 60)}


# what a well-formed configuration relates; the last three are counts it implies
RELEASED = {
    "hidden_size": 7168,
    "num_hidden_layers": 93,
    "num_attention_heads": 96,
    "routed_expert_hidden_size": 3584,
    "moe_intermediate_size": 3072,
    "num_experts": 896,
    "num_experts_per_token": 16,
    "num_shared_experts": 2,
    "first_k_dense_replace": 1,
    "attn_res_block_size": 12,
    "qkv_hidden_size": 1536,
    "vt_num_attention_heads": 12,
    "text_hidden_size": 7168,
    "latent_blocks": 112,
    "expert_blocks": 96,
    "vision_head_size": 128,
}
FIELDS = {name: var(name, INT) for name in RELEASED}
WELL_FORMED = define(
    "well_formed",
    list(FIELDS.values()),
    conj(
        *(f >= 1 for f in FIELDS.values()),
        eq(FIELDS["latent_blocks"] * 32, FIELDS["routed_expert_hidden_size"]),
        eq(FIELDS["expert_blocks"] * 32, FIELDS["moe_intermediate_size"]),
        FIELDS["num_experts_per_token"] <= FIELDS["num_experts"],
        FIELDS["first_k_dense_replace"] <= FIELDS["num_hidden_layers"],
        eq(
            FIELDS["vt_num_attention_heads"] * FIELDS["vision_head_size"],
            FIELDS["qkv_hidden_size"],
        ),
        eq(FIELDS["text_hidden_size"], FIELDS["hidden_size"]),
    ),
)


def released_is_well_formed() -> Term:
    """The released sizes are positive, both expert widths are whole blocks of 32, the
    vision heads divide their width, no more experts are active than there are, and the
    towers' widths agree.
    """
    return WELL_FORMED(*RELEASED.values())


@lemma
def _prove_well_formed() -> Thm:
    law = unfold(WELL_FORMED, *RELEASED.values())
    inside = [exact(g) for g in law.concl.args[1].args]
    return kernel.eq_mp(kernel.sym(law), kernel.conj_intro(*inside))


def _well_formed_mutants() -> Mapping[str, Term]:
    wrong = {**RELEASED, "routed_expert_hidden_size": 3583}
    heads = {**RELEASED, "qkv_hidden_size": 1024}
    return {
        "a latent width of 3583": WELL_FORMED(*wrong.values()),
        "vision heads dividing 1024": WELL_FORMED(*heads.values()),
    }


def _counts_mutants() -> Mapping[str, Term]:
    """Wrong variants of released_counts."""
    return {
        "no MLA layer more at the end": eq(integer(93) - 23, 69),
        "the partial block holds 8": eq(integer(7) * 12 + 8, 93),
        "no embedding among the sources": eq(integer(7) + 1, 9),
    }


THEOREMS: Theorems = {
    "depth_sources": Theorem(
        statement=depth_sources,
        proof=_prove_sources,
        scope="all depths and block sizes",
        mutants=_sources_mutants,
    ),
    "released_counts": Theorem(
        statement=released_counts,
        proof=_prove_released_counts,
        scope="the released 93 layers in blocks of 12",
        mutants=_counts_mutants,
    ),
    "blocks_cover_width": Theorem(
        statement=blocks_cover_width,
        proof=_prove_blocks,
        scope="all widths",
        mutants=_blocks_mutants,
    ),
    "cache_ratio": Theorem(
        statement=cache_ratio,
        proof=_prove_ratio,
        scope="the released sizes",
        mutants=_ratio_mutants,
    ),
    "released_is_well_formed": Theorem(
        statement=released_is_well_formed,
        proof=_prove_well_formed,
        scope="the released sizes",
        mutants=_well_formed_mutants,
    ),
}
