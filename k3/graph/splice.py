"""Image rows in the text as a graph: an embedding or a feature row, by a where node.

ids below W; a token whose id is the placeholder takes the next of the I feature rows.
"""

from k3.graph import primitives as p
from k3.graph.inputs import Inputs
from k3.graph.term import Term, constant, let, spread


def choose(table: Term, features: Term, ids: Term, image: Term, row: Term) -> Term:
    """features[row] where image is true, table[ids] elsewhere. ids' axes, then D."""
    # A text token reads no feature: its row is set to 0, which always exists.
    zero = spread(constant(0, "int"), row.shape)
    safe = p.within(p.where(image, row, zero), features.shape[0])
    return p.where(image, p.gather(features, safe), p.gather(table, ids))


def token(inputs: Inputs) -> tuple[Term, Term]:
    """One token: its embedding [D], and how many feature rows are then used.

    Inputs: id, placeholder, seen (rows used so far), features [I, D], and the table.
    """
    table = inputs.real("model.embed_tokens.weight", "W, D")
    features = inputs.real("features", "I, D")
    ident = inputs.integer("id", "", "W")
    image = let("is_image", p.equal(ident, inputs.integer("placeholder", "")))
    seen = inputs.integer("seen", "")
    embedding = choose(table, features, ident, image, seen)
    return let("embedding", embedding), seen + p.count(image)


def sequence(inputs: Inputs) -> Term:
    """All T tokens: their embeddings [T, D], image rows in order."""
    table = inputs.real("model.embed_tokens.weight", "W, D")
    features = inputs.real("features", "I, D")
    ids = inputs.integer("ids", "T", "W")
    placeholder = spread(inputs.integer("placeholder", ""), ids.shape)
    image = let("is_image", p.equal(ids, placeholder))
    row = let("row", p.before(p.count(image)))
    return let("embeddings", choose(table, features, ids, image, row))


def text(inputs: Inputs) -> Term:
    """One token without images: its row of the table [D]."""
    table = inputs.real("model.embed_tokens.weight", "W, D")
    return let("embedding", p.gather(table, inputs.integer("id", "", "W")))
