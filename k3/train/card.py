"""The model card: what was trained, on what, and how good it is."""

import datetime
import platform
from typing import TYPE_CHECKING

import torch

from k3.config import sizes
from k3.data.corpora import Corpus, Document
from k3.train.recipe import Recipe

if TYPE_CHECKING:
    from k3.train.pretrain import Result

FILE_NAME = "README.md"

_CARD = """\
# {name}: a small trained K3

{reads} in, text out: {total:,} parameters, {layers} layers ({kda} KDA and {mla}
MLA), AttnRes blocks of {block}, {experts} experts with {active} chosen and {shared}
shared, latent width {latent}, experts in MXFP4; the layout is the release's. `k3 train`
made the files and wrote this card.

## Held-out text

| model | bits per byte |
|---|---|
| this one, from its packed files | **{bits:.4f}** |
| xz -9e, training and held-out text minus training text (the bar) | {xz:.4f} |
| xz -9e, held-out text alone | {xz_alone:.4f} |
| order-5 Kneser-Ney (five bytes of context), trained on the same text | \
{kneser_ney:.4f} |

Every held-out document stands alone after one [EOS]; windows of {window} tokens
overlap by half, and each token is scored once. Bytes are those of the UTF-8 text. The
files are loaded as `k3.load` does by default, with a bfloat16 trunk.

## Data

Source: {source}, of Python {version}; licence {licence}.

Training text: {train_bytes:,} bytes in {train_documents} documents. Held-out text:
{heldout_bytes:,} bytes in {heldout_documents} documents, chosen by the hash of their
names. A paragraph that repeats is kept once, so that no held-out one was seen.
The text differs between Python versions; SHA-256 of this one:
`{sha256}`.
{tasks}
## Training

| | |
|---|---|
| steps | {steps:,} of {shape} tokens |
| tokens | {seen:,} |
| of them | {mixture} |
| vocabulary | {ranks} ranks and 256 specials |
| optimizer | {optimizer}, learning rate {rate:g}, weight decay {decay:g} |
| seed | {seed} |
| time | {minutes:.0f} minutes on {workers} CPU threads |
| date | {date} |
| with | Python {python}, torch {torch} |
| command | `{command}` |

It has read 2 MB of Python's documentation and continues such text;
{knows}.
Beginnings such as "Return True if" at temperature 0.7 read better than the most likely
token at every step, which soon repeats itself.
"""


_TASKS = """
Synthetic tasks: {names}.
k3.data.tasks draws them from an index; held-out questions have seeds of their own, and
where questions are few a fifth is kept aside by its hash.
{digits}"""
_DIGITS = """\
The digits are those of E. Alpaydin and C. Kaynak, UCI Machine Learning Repository,
1998, licence CC BY 4.0.
"""


def text(recipe: Recipe, corpus: Corpus, result: "Result", command: str) -> str:
    """Return the card as Markdown."""
    return _CARD.format(
        name=recipe.name,
        **_model(recipe),
        **_scores(result),
        **_data(corpus),
        **_run(recipe, result),
        **_mixture(recipe),
        command=command or f"k3 train {recipe.name} --out DIR",
    )


def _model(recipe: Recipe) -> dict[str, object]:
    config = recipe.config.text
    mla = len(config.linear_attn_config.full_attn_layers)
    return {
        "total": sizes.parameters(recipe.config).total,
        "layers": config.num_hidden_layers,
        "kda": config.num_hidden_layers - mla,
        "mla": mla,
        "block": config.attn_res_block_size,
        "experts": config.num_experts,
        "active": config.num_experts_per_token,
        "shared": config.num_shared_experts,
        "latent": config.routed_expert_hidden_size,
        "window": recipe.window,
        "ranks": recipe.num_ranks,
    }


def _scores(result: "Result") -> dict[str, object]:
    return {
        "bits": result.bits_per_byte,
        "xz": result.xz,
        "xz_alone": result.xz_alone,
        "kneser_ney": result.kneser_ney,
    }


def _data(corpus: Corpus) -> dict[str, object]:
    def size(documents: tuple[Document, ...]) -> int:
        return sum(document.num_bytes for document in documents)

    return {
        "source": corpus.source,
        "version": corpus.version,
        "licence": corpus.licence,
        "train_bytes": size(corpus.train),
        "train_documents": len(corpus.train),
        "heldout_bytes": size(corpus.heldout),
        "heldout_documents": len(corpus.heldout),
        "sha256": corpus.sha256,
    }


def _mixture(recipe: Recipe) -> dict[str, object]:
    total = sum(weight for _, weight in recipe.mixture)
    shares = [f"{weight / total:.0%} {name}" for name, weight in recipe.mixture]
    names = [name for name, _ in recipe.mixture if name != "text"]
    digits = _DIGITS if "digits" in names else ""
    tasks = _TASKS.format(names=", ".join(names), digits=digits) if names else ""
    beside = "beside the tasks it knows nothing else"
    return {
        "reads": "Text" if recipe.config.vision is None else "Text and pictures",
        "mixture": ", ".join(shares),
        "tasks": tasks,
        "knows": beside if names else "it knows nothing else and answers no questions",
        "optimizer": {"muon": "Muon and AdamW", "adamw": "AdamW"}[recipe.optimizer],
    }


def _run(recipe: Recipe, result: "Result") -> dict[str, object]:
    stages = recipe.stages or (recipe.stage(0),)
    return {
        "steps": result.steps,
        "shape": ", then ".join(f"{s.batch} x {s.tokens}" for s in stages),
        "seen": result.tokens,
        "rate": recipe.learning_rate,
        "decay": recipe.weight_decay,
        "seed": recipe.seed,
        "minutes": result.seconds / 60,
        "workers": recipe.workers,
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
