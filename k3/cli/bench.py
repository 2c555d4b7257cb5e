"""`k3 bench`: how fast a checkpoint runs here, beside what the machine allows."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from k3.cli import loading, options, output, settings
from k3.errors import RequestError

if TYPE_CHECKING:
    from k3.bench import Comparison, Figure, Report, Setting

SLOWER = 1
Prompt = Annotated[
    int,
    typer.Option(
        "--tokens",
        metavar="N",
        parser=settings.tokens("--tokens"),
        help="Length of the prompt that is prefilled.",
    ),
]
Context = Annotated[
    int,
    typer.Option(
        metavar="N",
        parser=settings.tokens("--context"),
        help="Tokens in the cache before decoding.",
    ),
]
Steps = Annotated[int, typer.Option(help="Decoded tokens a round.")]
Batch = Annotated[str, typer.Option(metavar="1,8", help="Sequences decoded at once.")]
Rounds = Annotated[int, typer.Option(help="Everything is timed this often, in turn.")]
Threads = Annotated[int | None, typer.Option(help="Without it torch's own number.")]
Clock = Annotated[
    str, typer.Option(help="wall, or cpu where others keep the machine busy.")
]
MemoryToo = Annotated[
    bool, typer.Option("--memory/--no-memory", help="Load once more to see its memory.")
]
Save = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the run for --against.")
]
Against = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Compare with a saved run.")
]
Factor = Annotated[
    float | None,
    typer.Option(help="With --against: exit 1 when this many times slower; 1.2."),
]


@dataclass(frozen=True, slots=True)
class Asked:
    """The options that say which model, how held."""

    path: Path
    dtype: str
    experts: str
    weights: str
    memory: bool


def bench(
    model: options.ModelOrTiny = "tiny",
    *,
    tokens: Prompt = 512,
    context: Context = 512,
    steps: Steps = 16,
    batch: Batch = "1,8",
    rounds: Rounds = 5,
    threads: Threads = None,
    clock: Clock = "wall",
    dtype: options.Dtype = "auto",
    experts: options.Experts = "packed",
    weights: options.Weights = "auto",
    memory: MemoryToo = True,
    save: Save = None,
    against: Against = None,
    factor: Factor = None,
    json: options.Json = False,
) -> int:
    """Time prefill, first token, decode and memory on the CPU, beside the limits.

    The floor of a decoded token is a streaming read of its weights, of a prompt its
    operations at the processor's peak; both are measured in the same rounds.

    \b
    k3 bench tiny --threads 1 --dtype bfloat16 --save before.json
    k3 bench tiny --threads 1 --dtype bfloat16 --against before.json --factor 1.1
    """
    loading.check(dtype, "cpu", experts)
    settings.one_of("--weights", weights, loading.WEIGHTS)
    asked = Asked(loading.find(model), dtype, experts, weights, memory)
    then = saved(against, factor)
    counts = {"tokens": tokens, "context": context, "steps": steps, "rounds": rounds}
    found = measured(asked, set_up(sizes(batch), threads, clock, counts))
    if save is not None:
        found.save(save)
    held = None if then is None else then(found)
    show(found, held, as_json=json)
    return 0 if held is None or held.ok else SLOWER


def saved(
    against: Path | None, factor: float | None
) -> "Callable[[Report], Comparison] | None":
    """What compares a run with the saved one, both read and checked before a run."""
    if against is None:
        if factor is not None:
            raise RequestError("--factor belongs to --against: got no file; name one")
        return None
    from k3.bench import Report, compare
    from k3.bench.report import FACTOR, check_factor

    allowed = FACTOR if factor is None else factor
    check_factor(allowed)
    then = Report.load(against)
    return lambda found: compare(found, then, allowed)


def set_up(
    batches: tuple[int, ...], threads: int | None, clock: str, counts: dict[str, int]
) -> "Setting":
    """The counts of a run, with torch's own number of threads for None."""
    import torch

    from k3.bench import Setting

    count = torch.get_num_threads() if threads is None else threads
    return Setting(**counts, batches=batches, threads=count, clock=clock)


def sizes(text: str) -> tuple[int, ...]:
    """The batch sizes of `1,8`."""
    words = text.split(",")
    if not all(word.strip().isdecimal() and len(word) < 9 for word in words):
        raise RequestError(
            f"--batch needs whole numbers with commas, such as 1,8: got {text!r:.80}"
        )
    return tuple(dict.fromkeys(int(word) for word in words))


def measured(asked: Asked, setting: "Setting") -> "Report":
    """Time the model, and where wanted see its memory in a process of its own."""
    from k3.bench import memory as memories
    from k3.bench import run

    kind = loading.EXPERTS[asked.experts]
    dtype = loading.pick_dtype(asked.dtype, "cpu")
    held = None
    if asked.memory:
        held = memories.measure(
            asked.path,
            dtype=str(dtype).removeprefix("torch."),
            experts=kind,
            weights=loading.pick_weights(asked.weights, dtype, "cpu"),
            threads=setting.threads,
            tokens=setting.context,
        )
    loaded = loading.load(
        asked.path,
        dtype=asked.dtype,
        device="cpu",
        experts=asked.experts,
        weights=asked.weights,
    )
    return run(loaded.model, setting, name=str(asked.path), memory=held)


def show(found: "Report", held: "Comparison | None", *, as_json: bool) -> None:
    """Print the run, and beside each figure the saved one's ratio."""
    if as_json:
        value = found.to_dict()
        output.json_value(
            value if held is None else value | {"against": held.to_dict()}
        )
        return
    about, limits = found.settings, found.context
    form = f", weights as {about['weights']}" if "weights" in about else ""
    print(
        f"{about['model']}, {about['dtype']}{form}, {about['experts']} experts, "
        f"{about['threads']} thread(s), {about['clock']} clock, "
        f"{limits['kernels']} kernels"
    )
    print(
        f"machine now: read {limits['read_bytes_per_s'] / 1e9:.1f} GB/s, products "
        f"{limits['operations_per_s'] / 1e9:.0f} GFLOP/s"
    )
    print(f"{'':28}{'median':>12}{'low':>11}{'high':>11}{'floor':>12}  share")
    for figure in found.figures:
        print(line(figure) + verdict(figure, held))


def line(figure: "Figure") -> str:
    """A figure with its floor, in units that a reader knows."""
    scale, unit = {"tok/s": (1, "tok/s"), "s": (1e3, "ms"), "bytes": (1e-6, "MB")}[
        figure.unit
    ]
    median, low, high, floor = (
        f"{x * scale:,.1f}"
        for x in (figure.median, figure.low, figure.high, figure.floor)
    )
    return (
        f"{figure.name:28}{median:>12}{low:>11}{high:>11}{floor:>12}  "
        f"{figure.share:5.2f}  {unit}"
    )


def verdict(figure: "Figure", held: "Comparison | None") -> str:
    """How much better than the saved run, in a word too."""
    if held is None or figure.name not in held.ratios:
        return ""
    return f"  {held.ratios[figure.name]:.2f} times: {held.verdict(figure.name)}"
