"""Wrong variants of every packed step; each must be refuted, or refused when built.

A mutant changes the nodes of some names. `change(node, find)` gets the node and a
function that finds another one of the same step by name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from k3.errors import ShapeError
from k3.graph import display, steps
from k3.graph import primitives as p
from k3.graph.model import Case, Schedule
from k3.graph.mutants_vision import CLIP, EMBED, ENCODER, MERGE, VISION
from k3.graph.mutation import Change, Changes, Find, operand, other, reverse
from k3.graph.references import references
from k3.graph.refute import Counterexample, refute
from k3.graph.term import Block, Term, let, rebuild, spread


@dataclass(frozen=True, slots=True)
class Mutant:
    """A wrong variant of a step: its name, what is wrong, and how it is made."""

    step: str
    name: str
    changes: Changes | Callable[[], Block]

    def make(self) -> Block:
        """The wrong block; ShapeError if the types refuse it."""
        if callable(self.changes):
            return self.changes()
        return rewire(display.get(self.step), self.changes)


def rewire(block: Block, changes: Mapping[str, Change]) -> Block:
    """The block with the nodes of these labels changed, all others typed anew."""
    known: dict[str, Term] = {}
    for node in block.nodes:
        known.setdefault(node.label or str(node.attrs.get("name", "")), node)
    missing = changes.keys() - known.keys()
    assert not missing, (block.name, missing)

    def change(old: Term, new: Term) -> Term:
        rule = changes.get(old.label) if old.label else None
        if rule is None:
            return new
        return let(old.label, rule(new, known.__getitem__))

    return rebuild(block, change)


def judge(mutant: Mutant) -> Counterexample | ShapeError | None:
    """A counterexample, the error that refused to build it, or None: undecided."""
    try:
        wrong = mutant.make()
    except ShapeError as refused:
        return refused
    right = display.get(mutant.step)
    return refute(wrong, references[mutant.step], inputs=right)


def _highest_ties(node: Term, find: Find) -> Term:
    # Indices E-1 .. 0: where the positions are, largest first.
    backwards = p.argsort(p.positions("E"))
    return p.gather(backwards, p.topk(p.flip(node.args[0]), "A"))


def _wrong_row(node: Term, find: Find) -> Term:
    window = find("window")
    return p.concat(node.args[0], p.cut(window, 1, "P"))


def _unflipped(node: Term, find: Find) -> Term:
    rows, taps = node.args
    return p.contract("wc,cw->c", rows, taps.args[0])


def _gate_first(node: Term, find: Find) -> Term:
    gate = p.reshape(find("output_gate"), *find("o").shape)
    return p.flatten(p.rms_norm(gate * find("o"), find("o_norm.weight")))


def _content_scale(node: Term, find: Find) -> Term:
    scores = find("scores")
    return p.softmax(scores / spread(p.sqrt(p.size("n")), scores.shape))


EXPERT: dict[str, Changes] = {
    "swapped operands: gate and up": {"gate": other("up"), "up": other("gate")},
    "the sigmoid takes the capped gate": {
        "opened": lambda node, find: p.sigmoid(find("capped"))
    },
    "the up factor is not capped": {"lifted": other("up")},
    "the cap does not multiply the tanh": {"capped": operand(0)},
}
KDA_UPDATE: dict[str, Changes] = {
    "decay after correction": {
        "recalled": lambda node, find: p.contract("hk,hkv->hv", find("k"), find("S"))
    },
    "the correction is subtracted": {
        "S_next": lambda node, find: node.args[0] - node.args[1]
    },
    "the read comes before the update": {
        "o": lambda node, find: p.contract("hkv,hk->hv", find("S"), find("q"))
    },
    "the write strength is missing": {
        "written": lambda node, find: p.contract("hk,hv->hkv", *node.args[1:])
    },
}
KDA_LAYER: dict[str, Changes] = {
    "off-by-one window: the newest old row is dropped": {"rolled": _wrong_row},
    "off-by-one window: the current token is missing": {"rolled": other("window")},
    "the taps run the other way": {"k_conv": _unflipped},
    "missing scale of the query": {"q": operand(0)},
    "the gate comes before the norm": {"normed": _gate_first},
    "no sigmoid in the decay": {
        "alpha": lambda node, find: p.exp(-5 * find("gate_in"))
    },
    "keys are not normalised": {"k": operand(0)},
    "values are normalised": {"v": lambda node, find: p.l2_norm(node)},
    "no output gate": {"gated": other("normed")},
}
MLA: dict[str, Changes] = {
    "missing scale of the scores": {"p": lambda node, find: p.softmax(find("scores"))},
    "the scale counts content only": {"p": _content_scale},
    "the gate has no sigmoid": {"output_gate": operand(0)},
    "the shared key is normalised": {"key": lambda node, find: p.unit_rms(node)},
    "the latent is not normalised": {"latent": operand(0)},
    "keys of the value map": {
        "keys": lambda node, find: p.contract(
            "tl,mnl->mtn", find("latents_next"), find("value_map")
        )
    },
    "the token does not see itself": {
        "values": lambda node, find: p.contract(
            "tl,mvl->mtv", find("latents"), find("value_map")
        )
    },
}
ABSORBED: dict[str, Changes] = {
    **{name: MLA[name] for name in list(MLA)[:5]},
    "the shared key is not scored": {"scores": operand(0)},
    "normalised rows are mixed": {
        "mixed": lambda node, find: p.contract(
            "mt,tl->ml", find("p"), p.unit_rms(find("latents_next"))
        )
    },
}
ATTN_RES: dict[str, Changes] = {
    "normalised values are mixed": {
        "h": lambda node, find: p.contract("n,nd->d", find("p"), find("keys"))
    },
    "raw keys are scored": {
        "scores": lambda node, find: p.contract("nd,d->n", find("values"), find("q"))
    },
    "scores are scaled by the width": {
        "scores": lambda node, find: node / spread(p.sqrt(p.size("D")), node.shape)
    },
    "weights do not sum to one": {"p": lambda node, find: p.exp(find("scores"))},
}
DEPTH: dict[str, Changes] = {
    "the running sum is no source": {"sources": operand(0)},
    "the running sum is overwritten": {"partial": operand(1)},
}
MOE: dict[str, Changes] = {
    "biased mixture weights": {
        "raw": lambda node, find: p.gather(find("adjusted"), find("chosen"))
    },
    "the bias does not choose": {
        "chosen": lambda node, find: p.topk(find("scores"), "A")
    },
    "the smallest are chosen": {
        "chosen": lambda node, find: p.topk(-find("adjusted"), "A")
    },
    "ties to the higher index": {"chosen": _highest_ties},
    "weights do not sum to one": {"weights": other("raw")},
    "the mixture is not normalised": {"normed": other("u")},
    "gate and up are exchanged": {
        "expert_gate": other("expert_up"),
        "expert_up": other("expert_gate"),
    },
    "no shared expert": {"y": operand(1)},
}
LAYER: dict[str, Changes] = {
    "the running sum is overwritten": {"partial": operand(1)},
    "normalised values are mixed": {
        "h": lambda node, find: p.contract("n,nd->d", node.args[0], find("keys"))
    },
}
SPLICE: dict[str, Changes] = {
    "the count includes the token itself": {
        "row": lambda node, find: node + node.args[0]
    },
    "text takes the features": {
        "embeddings": lambda node, find: p.where(find("is_image"), *node.args[:0:-1])
    },
}
FIRST: dict[str, Changes] = {
    "the token mixer's output is lost": {"partial": operand(1)},
    "the channel mixer's output is lost": {"partial": operand(0)},
    "the second mix does not see the first output": {"sources": operand(0)},
    "normalised values are mixed": {
        "h": lambda node, find: p.contract(
            "n,nd->d", node.args[0], p.unit_rms(node.args[1])
        )
    },
}
DRAFT: dict[str, Changes] = {
    "features in the other order": {"triple": reverse},
    "the feature is added unweighted": {
        "draft_in": lambda node, find: node.args[0] + find("feature")
    },
    "the high feature alone": {"feature": other("high")},
}


def _plan(cases: tuple[Case, ...], block: int) -> Callable[[], Block]:
    outputs = partial(steps.decoder_token, Schedule(cases, block))
    return lambda: Block("decoder_token", "", outputs())


DECODER: dict[str, Callable[[], Block]] = {
    "blocks are one layer longer": _plan(steps.SMALL.cases, 3),
    "blocks are never committed": _plan(steps.SMALL.cases, 9),
    "the last two layers are exchanged": _plan(
        (*steps.SMALL.cases[:2], ("mla", "sparse"), ("mla", "dense")), 2
    ),
}

_BY_STEP: dict[str, Mapping[str, Changes | Callable[[], Block]]] = {
    "expert": EXPERT,
    "kda_update": KDA_UPDATE,
    "kda_layer": KDA_LAYER,
    "mla_step": MLA,
    "mla_step_absorbed": ABSORBED,
    "attn_res": ATTN_RES,
    "attn_res_depth": DEPTH,
    "moe": MOE,
    **{f"layer_{m}_{c}": LAYER for m, c in steps.SMALL.cases},
    "layer_first_of_block": FIRST,
    "decoder_token": DECODER,
    "splice": SPLICE,
    "vision_embed": EMBED,
    "vision_embed_clip": CLIP,
    "vision_block": VISION,
    "vision_project": MERGE,
    "vision_encoder": ENCODER,
    "draft": DRAFT,
}

mutants: list[Mutant] = [
    Mutant(step, name, changes)
    for step, table in _BY_STEP.items()
    for name, changes in table.items()
]
