"""The calculator: `k3.config.sizes` read on symbols, exported as formulas.

Every number of the page is a tree of + - * // made by running the Python function on
`Symbol`s, so no formula is written twice.
"""

import html
import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib import resources
from typing import Any

from k3.config import K3Config, sizes
from k3.config.published import published
from k3.reader.page import Page

Tree = int | str | list[Any]
# What a reader may change, with its words. Layers and heads follow the model.
FREE = {
    "hidden_size": "width",
    "vocab_size": "vocabulary",
    "num_experts": "routed experts a layer",
    "num_experts_per_token": "experts a token",
    "moe_intermediate_size": "width inside an expert",
    "routed_expert_hidden_size": "latent width of experts",
    "kv_lora_rank": "latent rank of MLA",
    "qk_rope_head_dim": "shared key of MLA",
}
ASKED = {"tokens": 1_000_000, "itemsize": 2, "sequences": 1}
RESULTS = {
    "total": "parameters",
    "active": "active for one token",
    "stored_bytes": "weights on disk",
    "fixed_bytes": "state of a sequence, however short",
    "row_bytes": "growth per token",
    "sequence_bytes": "state of a sequence at this length",
    "all_bytes": "weights and states together",
}


class Symbol:
    """A name or an operation, under the arithmetic of whole numbers."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def __add__(self, other: Any) -> "Symbol":
        return Symbol(["+", self.tree, _tree(other)])

    def __radd__(self, other: Any) -> "Symbol":
        return self if other == 0 else Symbol(["+", _tree(other), self.tree])

    def __sub__(self, other: Any) -> "Symbol":
        return Symbol(["-", self.tree, _tree(other)])

    def __rsub__(self, other: Any) -> "Symbol":
        return Symbol(["-", _tree(other), self.tree])

    def __mul__(self, other: Any) -> "Symbol":
        return Symbol(["*", self.tree, _tree(other)])

    def __rmul__(self, other: Any) -> "Symbol":
        return Symbol(["*", _tree(other), self.tree])

    def __floordiv__(self, other: Any) -> "Symbol":
        return Symbol(["/", self.tree, _tree(other)])


def released() -> K3Config:
    """The published config."""
    return K3Config.from_dict(published())


def paper() -> K3Config:
    """The same with the prediction layer of Table 1."""
    data = published()
    data["text_config"]["num_nextn_predict_layers"] = 1
    return K3Config.from_dict(data)


def tiny() -> K3Config:
    """The model in the package."""
    with resources.as_file(resources.files("k3") / "assets" / "tiny") as folder:
        return K3Config.load(folder)


MODELS: dict[str, Callable[[], K3Config]] = {
    "released": released,
    "paper": paper,
    "tiny": tiny,
}


def _tree(value: Any) -> Tree:
    return value.tree if isinstance(value, Symbol) else int(value)


def results(config: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of the page, on integers or on symbols."""
    count = sizes.parameters(config)
    memory = sizes.memory(config, asked["tokens"], asked["itemsize"])
    stored = sizes.stored_bytes(config)
    return {
        "total": count.total,
        "active": count.active,
        "stored_bytes": stored,
        "fixed_bytes": memory.fixed_bytes,
        "row_bytes": memory.mla_bytes_per_token,
        "sequence_bytes": memory.sequence_bytes,
        "all_bytes": stored + asked["sequences"] * memory.sequence_bytes,
    }


def changed(config: K3Config, values: Mapping[str, Any]) -> Any:
    """The config with some numbers of the text model replaced, unchecked."""
    text = _copy(config.text, values)
    return _copy(config, {"text": text})


def _copy(value: Any, changes: Mapping[str, Any]) -> Any:
    made = object.__new__(type(value))
    for each in fields(value):
        given = changes.get(each.name, getattr(value, each.name))
        object.__setattr__(made, each.name, given)
    return made


def formulas(name: str) -> dict[str, Tree]:
    """The results of a model as trees over `FREE` and `ASKED`."""
    free = {field: Symbol(field) for field in FREE}
    asked = {field: Symbol(field) for field in ASKED}
    found = results(changed(MODELS[name](), free), asked)
    return {key: _tree(value) for key, value in found.items()}


def numbers(name: str) -> dict[str, int]:
    """The free numbers of a model as it is."""
    text = MODELS[name]().text
    return {field: getattr(text, field) for field in FREE}


def exported() -> bytes:
    """What `calculator.js` reads."""
    models = {n: {"free": numbers(n), "formulas": formulas(n)} for n in MODELS}
    data = {"asked": ASKED, "results": RESULTS, "models": models}
    return json.dumps(data, separators=(",", ":")).encode()


def shown(key: str, value: int) -> str:
    """A count, or bytes with their unit."""
    if not key.endswith("_bytes"):
        return f"{value:,}"
    size, unit = float(value), "B"
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    whole = f"{value:,} B"
    return whole if unit == "B" else f"{size:,.2f} {unit} = {whole}"


def page() -> Page:
    """The form, filled with the released model: numbers that need no JavaScript."""
    found = results(MODELS["released"](), ASKED)
    rows = "".join(
        f'<tr><th scope="row">{words}</th><td class="number">'
        f'<output data-result="{key}">{shown(key, found[key])}</output></td></tr>'
        for key, words in RESULTS.items()
    )
    models = "".join(f"<option>{name}</option>" for name in MODELS)
    return Page(
        path="calculator",
        title="Calculator",
        scripts=("calculator.js",),
        body=f"""<header class="opening"><h1>Parameters and memory</h1>
<p class="summary">What a K3 of these sizes holds, and what a sequence costs it. The
formulas are <code>k3.config.sizes</code>, run on symbols when this page was built.</p>
</header><form id="sizes" class="sizes">
<fieldset><legend>Model</legend><label>Start from <select name="model">{models}</select>
</label>{_inputs(numbers("released"), FREE)}</fieldset>
<div><fieldset><legend>Sequences</legend>{_inputs(ASKED, _ASKED_WORDS)}
<button type="reset">Reset</button></fieldset>
<div aria-live="polite"><table class="counts"><tbody>{rows}</tbody></table></div></div>
</form>
<p>Weights are counted as stored: MXFP4 experts, BF16 else. KDA memories are fp32.
<code>k3 inspect released --tokens 1M</code> prints the same.</p>""",
    )


_ASKED_WORDS = {
    "tokens": "tokens in a sequence",
    "itemsize": "bytes of a cached number",
    "sequences": "sequences at once",
}


def _inputs(values: Mapping[str, int], words: Mapping[str, str]) -> str:
    return "".join(
        f"<label>{html.escape(words[name])}"
        f'<input type="number" name="{name}" min="0" step="1" value="{value}"></label>'
        for name, value in values.items()
    )
