"""The options that several verbs share, each with its one wording."""

from typing import Annotated

import typer

from k3.cli import request, settings
from k3.errors import RequestError

# The settings of a recipe: k3.train.recipe.SETTINGS.
RECIPE_KEYS = (
    "mixture",
    "stages",
    "seed",
    "steps",
    "batch",
    "tokens",
    "micro_batch",
    "mtp_weight",
    "activations",
    "optimizer",
    "qk_clip",
    "learning_rate",
    "adamw_rate",
    "schedule",
    "warmup",
    "decay",
    "weight_decay",
    "beta1",
    "beta2",
    "clip",
    "spike",
    "max_skipped",
    "balance",
    "balance_bins",
    "balance_ema",
    "bias_rate",
    "workers",
    "parallel",
    "log_steps",
    "checkpoint_minutes",
    "keep",
    "window",
)

# k3.verify.refine.CLAIMS.
CLAIMS = ("stream", "chunk", "cache", "spec", "context", "quant")

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="A checkpoint folder, or tiny.")
]
ModelOrUrl = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="A checkpoint folder, tiny, or the URL of a server."
    ),
]
Prompts = Annotated[
    list[str] | None,
    typer.Option(
        "-p",
        "--prompt",
        help="Text to continue; may be repeated. Without it a pipe's text is read.",
    ),
]
Ids = Annotated[str, typer.Option(metavar="1,2,3", help="Token ids instead of text.")]
Images = Annotated[
    list[str] | None,
    typer.Option("--image", metavar="FILE", help="A picture before the text; repeats."),
]
Logprobs = Annotated[
    int | None, typer.Option(help="Show log-probabilities and this many alternatives.")
]
Stream = Annotated[bool, typer.Option(help="Print the text as it comes.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON value and nothing else.")
]
JsonLines = Annotated[
    bool, typer.Option("--json", help="Print one JSON value a line, one an answer.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a value that has no flag of its own in the command; may be repeated. "
        f"Keys: {', '.join(request.DEFAULTS)}.",
    ),
]
SetRecipe = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help=f"Set one value; may be repeated. Keys: {', '.join(RECIPE_KEYS)}.",
    ),
]
Dtype = Annotated[
    str,
    typer.Option(help="auto (float32 on a CPU), float64, float32 or bfloat16."),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
Experts = Annotated[
    str, typer.Option(help="packed (MXFP4 in memory), dequantized (dense) or mmap.")
]
Weights = Annotated[
    str,
    typer.Option(
        help="stored (bfloat16 in memory, widened where it is used), widened, or auto: "
        "stored in float32 where native kernels run."
    ),
]
MaxTokens = Annotated[
    int,
    typer.Option(
        metavar="N",
        parser=settings.tokens("--max-tokens"),
        help="Stop after this many tokens; 0 is none.",
    ),
]
Temperature = Annotated[
    float, typer.Option(help="0 takes the most likely token, 1 draws as trained.")
]
TopP = Annotated[
    float, typer.Option(help="Draw among the fewest tokens that reach this share.")
]
TopK = Annotated[int, typer.Option(help="Draw among the K most likely; 0 is all.")]
MinP = Annotated[
    float, typer.Option(help="Drop tokens less likely than this times the first.")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same text.")]
Stop = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXT", help="End before this text; may be repeated."),
]
StopId = Annotated[
    list[int] | None,
    typer.Option(metavar="ID", help="End at this token; may be repeated."),
]
IgnoreEos = Annotated[
    bool, typer.Option("--ignore-eos", help="Go on after the end-of-message token.")
]
# Of compare, inspect and convert.
ModelAndGolden = Annotated[
    list[str],
    typer.Argument(
        metavar="[MODEL|OP] GOLDEN.npz|URL|module:function",
        help="MODEL may be left out, or -, if the file names its weights by salt.",
    ),
]
Tolerance = Annotated[float | None, typer.Option(help="Instead of the dtype's own.")]
ModelOrConfig = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A folder, a config.json, tiny, or the configs released and paper.",
    ),
]
ContextTokens = Annotated[
    int,
    typer.Option(
        "--tokens",
        metavar="N",
        parser=settings.tokens("--tokens"),
        help="Context length for the memory figures: 4096, 100k, 1M.",
    ),
]
Source = Annotated[
    str, typer.Argument(metavar="SRC", help="A checkpoint folder, or tiny.")
]
Target = Annotated[
    str, typer.Argument(metavar="DST", help="A new folder; never written over.")
]
Storage = Annotated[
    str,
    typer.Option(
        "--experts", help="packed (MXFP4), dense (dequantized, bfloat16), or keep."
    ),
]
MaxShard = Annotated[
    str, typer.Option(metavar="SIZE", help="Most bytes in a file: 500MB, 5GB.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be written, write nothing.")
]
# Of prove and graph.
Theorem = Annotated[
    str, typer.Argument(metavar="NAME", help="A theorem, such as situ.output_bound.")
]
Everything = Annotated[bool, typer.Option("--all", help="Prove every theorem.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Add lemmas, definitions and rules.")
]
Article = Annotated[
    bool, typer.Option("--article", help="Map the article's theorems to ours.")
]
SolverSeed = Annotated[int, typer.Option("--seed", help="Seed of both solvers.")]
CheckLog = Annotated[
    bool, typer.Option("--check-log", help="Repeat the log with the second checker.")
]
EmptyCache = Annotated[
    bool, typer.Option("--empty-cache", help="Ask the solvers everything anew.")
]
Graph = Annotated[
    str, typer.Argument(metavar="NAME", help="A packed step, such as kda_layer.")
]
Dot = Annotated[bool, typer.Option("--dot", help="Print a Graphviz digraph.")]
Latex = Annotated[bool, typer.Option("--latex", help="Print an aligned display.")]
Run = Annotated[bool, typer.Option("--run", help="Evaluate at small random inputs.")]


def _seed(value: int) -> int:
    rule, holds = request.SEED
    if not holds(value):
        raise RequestError(f"--seed must be {rule}: got {value}")
    return value


DrawSeed = Annotated[
    int, typer.Option("--seed", help="Seed of the random inputs.", callback=_seed)
]
# Of verify, vectors and compare.
Claim = Annotated[
    str,
    typer.Argument(
        metavar="CLAIM",
        help=f"{', '.join(CLAIMS)}, or all of them; or enclose.",
    ),
]
ModelOrTiny = Annotated[
    str, typer.Argument(metavar="[MODEL]", help="A checkpoint folder, or tiny.")
]
CheckedTokens = Annotated[
    int,
    typer.Option(
        "--tokens",
        metavar="N",
        parser=settings.tokens("--tokens"),
        help="Length of the sequence that is run.",
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        metavar="N",
        help="Random points of exact arithmetic (2): the error bound is one's power.",
    ),
]
Text = Annotated[
    str | None,
    typer.Option("-p", "--prompt", help="A text that enclose runs, for drawn tokens."),
]
Exact = Annotated[
    bool,
    typer.Option(help="Decide equality in exact arithmetic too."),
]
Words = Annotated[
    list[str],
    typer.Argument(metavar="list | export OP|MODEL DIR", help="What to do."),
]
VectorDtype = Annotated[
    str, typer.Option(help="float64, float32 or bfloat16: of inputs and outputs.")
]
Signature = Annotated[
    str,
    typer.Option(
        "--as", help="Whose signature the function has: k3, fla, transformers."
    ),
]
