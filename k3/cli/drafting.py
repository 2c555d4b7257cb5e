"""`--speculative-config`: which draft a server runs, and how it is loaded."""

import json
from typing import TYPE_CHECKING, Any

from k3.cli import loading
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.serve.draft import Draft

KEYS = (
    *("method", "model", "num_speculative_tokens"),
    *("prompt_lookup_max", "prompt_lookup_min", "speculative_token_tree"),
)
METHODS = ("ngram", "draft_model", "eagle3")


def read(asked: dict[str, Any]) -> dict[str, Any]:
    """The drafting options; empty without.

    Raises: RequestError for what is no JSON object of known keys.
    """
    given = asked["speculative_config"]
    if not given:
        return {}
    try:
        found = json.loads(given)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RequestError(
            f"--speculative-config needs a JSON object: got {given[:80]!r}; write "
            '{"method": "ngram", "num_speculative_tokens": 4}'
        )
    unknown = sorted(set(found) - set(KEYS))
    if unknown:
        raise RequestError(
            f"--speculative-config has the keys {', '.join(KEYS)}: got "
            f"{unknown[0]!r}; leave it out"
        )
    method = found.get("method", "draft_model" if "model" in found else "ngram")
    if method not in METHODS or (method == "ngram") == ("model" in found):
        raise RequestError(
            "--speculative-config drafts with method ngram, or with draft_model or "
            "eagle3 and the folder of a small K3 or of a trained draft as model: got "
            f"{method!r}; other trained drafts (mtp, dspark) are not served"
        )
    return {"num_speculative_tokens": _depth(found, method), **found, "method": method}


def _depth(found: dict[str, Any], method: str) -> int:
    """Tokens proposed one behind the other: four, or the depth of a tree."""
    if "speculative_token_tree" not in found:
        return 4
    from k3.serve.tree import Tree

    depth = Tree.of(found["speculative_token_tree"]).depth
    if method != "eagle3" or found.get("num_speculative_tokens", depth) != depth:
        raise RequestError(
            "speculative_token_tree is the shape of what method eagle3 proposes, and "
            f"num_speculative_tokens its depth: got {method!r} and "
            f"{found.get('num_speculative_tokens')} for {depth}; leave one out"
        )
    return depth


def load(found: dict[str, Any], names: dict[str, str]) -> "Draft | None":
    """The draft; None without drafting options."""
    if not found:
        return None
    from k3.serve.speculate import EagleDraft, ModelDraft, NGramDraft

    if found["method"] == "ngram":
        bounds = {"most": "prompt_lookup_max", "least": "prompt_lookup_min"}
        given = {name: found[key] for name, key in bounds.items() if key in found}
        return NGramDraft(**given)
    if found["method"] == "eagle3":
        from k3.checkpoint import draft
        from k3.serve.tree import Tree

        shape = found.get("speculative_token_tree")
        tree = Tree.of(shape) if shape else None
        return EagleDraft(draft.load(found["model"]), tree)
    path = loading.find(found["model"])
    return ModelDraft(loading.load_frozen(path, **names).model)
